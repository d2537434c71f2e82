"""The deploys that every story has: ten days of ordinary work."""

from __future__ import annotations

from bot.incident.story import Change, Edit

DAY = 24 * 60.0

ORDINARY: tuple[Change, ...] = (
    Change(
        -9.2 * DAY,
        "gateway",
        "5.11.0",
        "Mira Holt",
        "gateway: count requests that were answered from the cache",
        "Asked for by the people who pay for the cache.",
        (Edit("gateway/config.yaml", "headers:\n", "cache:\n  count: true\nheaders:\n"),),
    ),
    Change(
        -8.1 * DAY,
        "stock",
        "3.6.0",
        "Jonas Reuter",
        "stock: say below which count a shelf is reported",
        "The report showed shelves that nobody refills.",
        (Edit("stock/jobs.py", "below_minimum(limit=BATCH)", "below_minimum(limit=BATCH, minimum=5)"),),
    ),
    Change(
        -6.3 * DAY,
        "stock",
        "3.7.0",
        "Priya Nair",
        "stock: free reservations that ran out, behind a flag",
        "The sweep is off until the warehouse has agreed on the times.",
        (
            Edit(
                "stock/jobs.py",
                "def restock_report",
                "def sweep_reservations():\n    db = pool.take()\n"
                "    expired = db.reservations.expired(limit=BATCH)\n"
                "    if not expired:\n        return 0\n    db.reservations.free(expired)\n    db.commit()\n"
                "    pool.give_back(db)\n    return len(expired)\n\n\ndef restock_report",
            ),
        ),
    ),
    Change(
        -5.2 * DAY,
        "checkout",
        "2.29.0",
        "Lea Sommer",
        "checkout: name the customer in the confirmation",
        "",
        (
            Edit(
                "checkout/orders.py",
                '"order": order.id,\n',
                '"order": order.id,\n        "customer": order.customer.name,\n',
            ),
        ),
    ),
    Change(
        -4.0 * DAY,
        "database",
        "14.9-3",
        "Tomás Ibarra",
        "database: index reservations by their end",
        "The nightly clean-up read the whole table.",
        (
            Edit(
                "database/schema.sql",
                "create index orders_by_customer",
                "create index reservations_by_end on reservations (until);\ncreate index orders_by_customer",
            ),
        ),
    ),
    Change(
        -3.1 * DAY,
        "gateway",
        "5.12.0",
        "Mira Holt",
        "gateway: send a header that forbids framing",
        "Found in the yearly review.",
        (Edit("gateway/config.yaml", "  server: shop\n", "  server: shop\n  x-frame-options: DENY\n"),),
    ),
    Change(
        -2.2 * DAY,
        "stock",
        "3.7.1",
        "Jonas Reuter",
        "stock: sort availability by article",
        "Makes two answers comparable in the logs.",
        (Edit("stock/reserve.py", "db.shelf.counts(skus)", "dict(sorted(db.shelf.counts(skus).items()))"),),
    ),
    Change(
        -1.15 * DAY,
        "checkout",
        "2.30.0",
        "Lea Sommer",
        "checkout: keep the currency beside each total",
        "Preparation for the second country.",
        (
            Edit(
                "checkout/orders.py",
                '"items": len(order.lines),\n',
                '"items": len(order.lines),\n        "currency": "EUR",\n',
            ),
        ),
    ),
)

GATEWAY_LOGS_ITS_HOST = Change(
    -27,
    "gateway",
    "5.12.1",
    "Mira Holt",
    "gateway: log the host name that was asked for",
    "Two old names still receive requests, and nobody knows from whom.",
    (Edit("gateway/config.yaml", "  sample: 0.01\n", "  sample: 0.01\n  host: true\n"),),
)

CHECKOUT_ROUNDS = Change(
    -39,
    "checkout",
    "2.30.1",
    "Dana Petrov",
    "checkout: round half a cent to even",
    "The bookkeeping does it this way.",
    (
        Edit(
            "checkout/pricing.py",
            "    return sum((rows[line.sku] * line.count for line in order.lines), Money(0))\n",
            "    exact = sum((rows[line.sku] * line.count for line in order.lines), Money(0))\n"
            '    return exact.rounded("half-even")\n',
        ),
    ),
)

CHECKOUT_SHOWS_PRICES = Change(
    -16,
    "checkout",
    "2.31.0",
    "Dana Petrov",
    "checkout: show the price of every line in the order summary",
    "Customers asked what each article cost when the order has several.",
    (
        Edit(
            "checkout/orders.py",
            '        "items": len(order.lines),\n',
            '        "items": [\n'
            '            {"sku": line.sku, "count": line.count, "price": pricing.current(db, line.sku)}\n'
            "            for line in order.lines\n        ],\n",
        ),
    ),
)

STOCK_ROUTES_METHOD = Change(
    -46,
    "stock",
    "3.7.2",
    "Jonas Reuter",
    "stock: answer HEAD on availability",
    "A partner checks with HEAD whether the page is there.",
    (
        Edit(
            "stock/reserve.py",
            "def availability(skus):\n",
            "def availability_exists(skus):\n    return bool(skus)\n\n\ndef availability(skus):\n",
        ),
    ),
)

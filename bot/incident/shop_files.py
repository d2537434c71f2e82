"""The shop's sources as they were before the deploy history begins: what its commits change."""

from __future__ import annotations

from collections.abc import Mapping

FILES: Mapping[str, str] = {
    "README.md": """# Shop

Four services, one folder each. A merge to main is deployed at once; the tag says which service and version.
""",
    "gateway/routes.py": """from gateway import upstream

TIMEOUT_S = 10


def checkout(request):
    return upstream.post("checkout", "/orders", request.body, timeout=TIMEOUT_S)


def products(request):
    return upstream.get("stock", "/availability", request.query, timeout=TIMEOUT_S)
""",
    "gateway/config.yaml": """workers: 64
timeout_s: 10
log:
  access: true
  sample: 0.01
headers:
  server: shop
""",
    "checkout/orders.py": """from checkout import payments, pricing, stock
from checkout.store import store


def place(order):
    with store.transaction() as db:
        stock.reserve(order.lines)
        total = pricing.total(db, order)
        payments.charge(order.customer, total)
        db.orders.insert(order)
        return summary(db, order)


def summary(db, order):
    return {
        "order": order.id,
        "items": len(order.lines),
        "total": pricing.total(db, order),
    }
""",
    "checkout/pricing.py": """from checkout.money import Money


def total(db, order):
    rows = db.prices.of_skus([line.sku for line in order.lines])
    return sum((rows[line.sku] * line.count for line in order.lines), Money(0))


def current(db, sku):
    return db.prices.of_sku(sku)
""",
    "checkout/config.yaml": """workers: 48
pool:
  size: 30
  timeout_s: 3
payments:
  timeout_s: 8
  retries: 0
stock:
  url: https://stock.internal:8080
  timeout_s: 5
""",
    "stock/reserve.py": """from stock.pool import pool


def reserve(lines):
    with pool.connection() as db:
        for line in lines:
            db.shelf.take(line.sku, line.count)


def availability(skus):
    with pool.connection() as db:
        return db.shelf.counts(skus)
""",
    "stock/jobs.py": """from stock.pool import pool

BATCH = 200


def restock_report():
    with pool.connection() as db:
        return db.shelf.below_minimum(limit=BATCH)
""",
    "stock/config.yaml": """workers: 32
pool:
  size: 20
  timeout_s: 3
tls:
  host: stock.internal
  certificate: /etc/tls/stock.internal.pem
flags:
  reservation_sweep: false
""",
    "database/schema.sql": """create table prices (sku text primary key, amount integer not null);
create table shelf (sku text primary key, count integer not null);
create table orders (id text primary key, customer text not null, placed_at timestamptz not null);
create table reservations (id bigint primary key, sku text not null, until timestamptz not null);
create index orders_by_customer on orders (customer);
""",
}

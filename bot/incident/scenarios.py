"""The six stories as data: what changes in which service, what the deploy history and the logs show.

Rule 1: nothing in here says what is wrong; that is in answers.py, which the program never imports.
Rule 2: each story has false leads: a deploy that is near in time, errors that do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.incident.commits import (
    CHECKOUT_ROUNDS,
    CHECKOUT_SHOWS_PRICES,
    GATEWAY_LOGS_ITS_HOST,
    STOCK_ROUTES_METHOD,
)
from bot.incident.story import Effect, Knob, Notice, Scenario

LATENCY = "checkout p99 above 2 s"
ERRORS = "checkout errors above 5 %"

# A crawler that asks for pages which were never there, and a busy image-resizer: no harm done.
CRAWLER = Effect(Knob.CRAWLER, 9.0, since=-52, ramp=1, until=-44)
THUMBNAILS = Effect(Knob.RESIZER_CORES, 0.9, since=-70, ramp=4, until=-20)
FALSE_LEADS = (CRAWLER, THUMBNAILS)

BAD_DEPLOY = Scenario(
    name="bad_deploy",
    alert=LATENCY,
    effects=(
        Effect(Knob.CHECKOUT_QUERIES, 20.0, since=-16, ramp=3),
        Effect(Knob.CHECKOUT_CPU, 2.1, since=-16, ramp=3),
        *FALSE_LEADS,
    ),
    changes=(STOCK_ROUTES_METHOD, CHECKOUT_SHOWS_PRICES),
)

EXHAUSTED_POOL = Scenario(
    name="exhausted_pool",
    alert=LATENCY,
    effects=(Effect(Knob.STOCK_LEAK, 21.0, since=-47, ramp=48), *FALSE_LEADS),
    changes=(GATEWAY_LOGS_ITS_HOST,),
    notices=(
        Notice(
            "stock", "info", "flag changed", -47.5, fields=(("flag", "reservation_sweep"), ("value", "on"))
        ),
        Notice(
            "stock", "info", "reservation sweep done", -47, every=2.4, fields=(("freed", 0), ("batch", 200))
        ),
        Notice(
            "database",
            "warn",
            "session idle in transaction for more than 300 s",
            -41,
            every=2.4,
            fields=(("client", "stock"), ("statement", "select from reservations")),
        ),
    ),
)

SLOW_DEPENDENCY = Scenario(
    name="slow_dependency",
    alert=LATENCY,
    effects=(
        Effect(Knob.PAYMENTS_LATENCY, 11.0, since=-13, ramp=3),
        Effect(Knob.PAYMENTS_ERRORS, 0.015, since=-13, ramp=3),
        *FALSE_LEADS,
    ),
    changes=(CHECKOUT_ROUNDS, GATEWAY_LOGS_ITS_HOST),
)

EXPIRED_CERTIFICATE = Scenario(
    name="expired_certificate",
    alert=ERRORS,
    effects=(Effect(Knob.STOCK_TLS, 0.97, since=-7, ramp=3), *FALSE_LEADS),
    changes=(STOCK_ROUTES_METHOD, GATEWAY_LOGS_ITS_HOST),
    stock_certificate_ends=-7,
)

NOISY_NEIGHBOUR = Scenario(
    name="noisy_neighbour",
    alert=LATENCY,
    effects=(
        Effect(Knob.INDEXER_CORES, 3.0, since=-18, ramp=2),
        Effect(Knob.STOCK_PRESSURE, 0.78, since=-18, ramp=4),
        *FALSE_LEADS,
    ),
    changes=(STOCK_ROUTES_METHOD, CHECKOUT_ROUNDS),
)

NOTHING_WRONG = Scenario(
    name="nothing_wrong",
    alert=LATENCY,
    effects=FALSE_LEADS,
    changes=(CHECKOUT_ROUNDS, GATEWAY_LOGS_ITS_HOST),
)

SCENARIOS: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        BAD_DEPLOY,
        EXHAUSTED_POOL,
        SLOW_DEPENDENCY,
        EXPIRED_CERTIFICATE,
        NOISY_NEIGHBOUR,
        NOTHING_WRONG,
    )
}

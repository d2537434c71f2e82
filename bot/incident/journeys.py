"""Single requests on their way through the shop: what the traces show and the request lines of the logs tell.

A few for each scrape, drawn from the same curves as the metrics of that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

import numpy as np

from bot.incident.noise import dice
from bot.incident.outcomes import EXCEPTIONS, HANDSHAKE_S
from bot.incident.signals import PAYMENTS_TIMEOUT_S, POOL_TIMEOUT_S, SHAPE, STOCK_POOL, Shop
from bot.incident.story import TICK_S, Story

EACH_TICK = 5  # two orders, three looks at products
ORDERS = 2
BLOCK = 240  # scrapes that are worked out together
MOST_QUERY_SPANS = 12

Field = str | int | float


@dataclass
class Span:
    """What one service did for one request; times in seconds of the epoch."""

    service: str
    operation: str
    start: float
    duration: float = 0.0
    status: int = 200
    error: str = ""
    tags: dict[str, Field] = field(default_factory=dict)
    children: list[Span] = field(default_factory=list)

    def all(self) -> Iterator[Span]:
        """This and everything inside."""
        yield self
        for child in self.children:
            yield from child.all()


@dataclass(frozen=True)
class Journey:
    """One request from the door on."""

    trace_id: str
    root: Span


@lru_cache(maxsize=512)
def journeys(story: Story, tick: int) -> tuple[Journey, ...]:
    """The requests that are told of one scrape."""
    now = _moments(story, tick // BLOCK)[tick % BLOCK]
    rng, start = dice(story.seed, "journeys", tick), story.origin + tick * TICK_S
    made = []
    for number in range(EACH_TICK):
        trace_id = f"{tick & 0xFFFFFFFF:08x}{number:02x}{rng.getrandbits(88):022x}"
        at = start + rng.random() * TICK_S
        made.append(Journey(trace_id, _order(now, rng, at) if number < ORDERS else _look(now, rng, at)))
    return tuple(made)


def journey(story: Story, trace_id: str) -> Journey | None:
    """The request of a trace id, if there was such a one."""
    try:
        tick = int(trace_id[:8], 16)
    except ValueError:
        return None
    if tick > story.tick(story.began_at) + 10_000_000:
        return None
    return next((each for each in journeys(story, tick) if each.trace_id == trace_id), None)


@lru_cache(maxsize=64)
def _moments(story: Story, block: int) -> tuple[Mapping[str, float], ...]:
    ticks = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.float64)
    shop = Shop(story, story.origin + TICK_S * ticks)
    rows = {
        "tls": shop.tls_failures,
        "query": shop.query_s,
        "queries": shop.queries_an_order,
        "stock": shop.stock_s - shop.stock_wait_s - 2.0 * shop.before.query_s,
        "pressure": shop.pressure,
        "wait": shop.stock_wait_s,
        "full": shop.pool_timeouts,
        "in_use": shop.stock_in_use,
        "payments": shop.payments_s,
        "refused": shop.payments_errors,
    }
    return tuple({name: float(values[place]) for name, values in rows.items()} for place in range(BLOCK))


def _drawn(rng: Random, median: float) -> float:
    """A time from the curve of the metrics."""
    share = min(max(rng.random(), 0.002), 0.998)
    return median * float((share / (1.0 - share)) ** (1.0 / SHAPE))


def _order(now: Mapping[str, float], rng: Random, at: float) -> Span:
    root = Span("gateway", "POST /checkout", at, tags={"route": "/checkout"})
    checkout = Span("checkout", "POST /orders", at + 0.003, tags={"route": "/orders"})
    root.children.append(checkout)
    _checkout(checkout, now, rng)
    root.duration = checkout.duration + 0.006
    root.status = {201: 200, 500: 502}.get(checkout.status, checkout.status)
    if checkout.status >= 500:
        root.error = f"checkout answered {checkout.status}"
        root.tags["dependency"] = "checkout"
    if root.duration > 10:
        root.duration, root.status, root.error = 10.0, 504, "no answer from checkout within 10 s"
        root.tags["dependency"] = "checkout"
    return root


def _checkout(span: Span, now: Mapping[str, float], rng: Random) -> None:
    """Reserve in stock, read prices and write the order, take the money."""
    clock = span.start + 0.004
    stock = _stock(now, rng, clock, "POST /reserve", "/reserve")
    span.children.append(stock)
    span.tags["stock_ms"] = _ms(stock.duration)
    span.status, clock = 201, clock + stock.duration
    if stock.status >= 500:
        _fails(
            span,
            502,
            stock.error if "certificate" in stock.error else f"stock answered {stock.status}",
            "stock",
        )
    else:
        clock = _queries(span, now, rng, clock)
        clock = _payment(span, now, rng, clock)
    if span.status == 201 and rng.random() < EXCEPTIONS:
        _fails(span, 500, "KeyError: 'country'", "")
    elif span.status == 201 and rng.random() < 0.02:
        span.status = 409
    span.duration = clock - span.start + _drawn(rng, 0.012)


def _queries(span: Span, now: Mapping[str, float], rng: Random, clock: float) -> float:
    count, begin = max(round(now["queries"] * (0.6 + 0.8 * rng.random())), 4), clock
    usual = _drawn(rng, now["query"])  # the queries of one order are slow together
    for number in range(count):
        took = usual * (0.7 + 0.6 * rng.random())
        if number < MOST_QUERY_SPANS:
            name = "SELECT prices" if number < count - 2 else "INSERT orders"
            span.children.append(Span("database", name, clock, took, tags={"client": "checkout"}))
        clock += took + 0.0004
    span.tags["db_queries"], span.tags["db_ms"] = count, _ms(clock - begin)
    return clock


def _payment(span: Span, now: Mapping[str, float], rng: Random, clock: float) -> float:
    took = _drawn(rng, now["payments"])
    paid = Span("checkout", "POST payments /charge", clock, min(took, PAYMENTS_TIMEOUT_S))
    paid.tags["dependency"] = "payments"
    span.children.append(paid)
    span.tags["payments_ms"] = _ms(paid.duration)
    if took > PAYMENTS_TIMEOUT_S:
        paid.error, paid.status = "no answer within 8 s", 504
        _fails(span, 504, "payments: no answer within 8 s", "payments")
    elif rng.random() < now["refused"]:
        paid.error, paid.status = "503 Service Unavailable", 503
        _fails(span, 502, "payments answered 503", "payments")
    return clock + paid.duration


def _look(now: Mapping[str, float], rng: Random, at: float) -> Span:
    root = Span("gateway", "GET /products", at, tags={"route": "/products"})
    stock = _stock(now, rng, at + 0.003, "GET /availability", "/availability")
    root.children.append(stock)
    root.duration = stock.duration + 0.006
    if stock.status >= 500:
        _fails(
            root,
            502,
            stock.error if "certificate" in stock.error else f"stock answered {stock.status}",
            "stock",
        )
    return root


def _stock(now: Mapping[str, float], rng: Random, at: float, operation: str, route: str) -> Span:
    """A call to stock; one that ends in the handshake never reaches it, and is the caller's own span."""
    if rng.random() < now["tls"]:
        span = Span("", f"{operation} (connect stock.internal:8080)", at, _drawn(rng, HANDSHAKE_S), 502)
        span.error = "tls: handshake with stock.internal failed: certificate has expired"
        return span
    span = Span("stock", operation, at, tags={"route": route})
    if rng.random() < now["full"]:
        span.duration, span.tags["pool_wait_ms"] = POOL_TIMEOUT_S + 0.002, 3_000
        _fails(
            span,
            503,
            f"no connection from the pool within 3 s ({STOCK_POOL} of {STOCK_POOL} in use)",
            "database",
        )
        return span
    own = _drawn(rng, now["stock"])
    wait = _drawn(rng, now["wait"]) if now["wait"] > 0.001 else 0.0
    clock = at + own * 0.6 + wait
    for name in ("SELECT shelf", "UPDATE shelf"):
        took = _drawn(rng, now["query"])
        span.children.append(Span("database", name, clock, took, tags={"client": "stock"}))
        clock += took
    span.duration = clock - at + own * 0.4
    span.tags |= {
        "pool_wait_ms": _ms(wait),
        "cpu_wait_ms": _ms(own * now["pressure"]),
        "db_ms": _ms(sum(child.duration for child in span.children)),
    }
    return span


def _of_stock(call: Span) -> str:
    """What a caller says of a call to stock that failed."""
    return f"stock answered {call.status}" if call.service else call.error


def _fails(span: Span, status: int, error: str, dependency: str) -> None:
    span.status, span.error = status, error
    if dependency:
        span.tags["dependency"] = dependency


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 1)

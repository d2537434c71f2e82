"""How requests of each route and call end: shares that add up to 1, and the time that each way takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.incident.columns import Outcome
from bot.incident.noise import Floats
from bot.incident.signals import (
    GATEWAY_TIMEOUT_S,
    PAYMENTS_TIMEOUT_S,
    POOL_TIMEOUT_S,
    Shop,
    below,
)
from bot.incident.story import Knob

HANDSHAKE_S = 0.012
NETWORK_S = 0.001
EXCEPTIONS, SOLD_OUT = 0.0003, 0.02


@dataclass(frozen=True)
class Route:
    """One route of one service."""

    service: str
    path: str
    method: str
    rate: Floats
    outcomes: Sequence[Outcome]


@dataclass(frozen=True)
class Call:
    """What one service asks of another."""

    service: str
    dependency: str
    rate: Floats
    outcomes: Sequence[Outcome]


def _rest(*outcomes: Outcome, status: str, median: Floats) -> tuple[Outcome, ...]:
    """The outcomes, and the one that is left."""
    share = 1.0 - sum((each.share for each in outcomes), 0.0 * median)
    return (*outcomes, Outcome(share, median, status))


def checkout_orders(shop: Shop) -> tuple[Outcome, ...]:
    """Of checkout's `/orders`: first stock is asked, then the payment company."""
    tls, full = shop.tls_failures, shop.before.pool_timeouts
    reserved = (1.0 - tls) * (1.0 - full)
    late = 1.0 - below(PAYMENTS_TIMEOUT_S, shop.payments_s)
    refused = shop.payments_errors - late
    return _rest(
        Outcome(tls, HANDSHAKE_S + 0.02, "502", "tls"),
        Outcome((1.0 - tls) * full, POOL_TIMEOUT_S + 0.05, "502", "upstream"),
        Outcome(reserved * refused, shop.payments_s + 0.08, "502", "upstream"),
        Outcome(reserved * late, PAYMENTS_TIMEOUT_S + 0.1, "504", "timeout"),
        Outcome(EXCEPTIONS * reserved, 0.06, "500", "exception"),
        Outcome(SOLD_OUT * reserved, 0.03 + shop.before.stock_s, "409"),
        status="201",
        median=shop.checkout_s,
    )


def stock_requests(shop: Shop) -> tuple[Outcome, ...]:
    """Of stock's routes."""
    return _rest(
        Outcome(shop.pool_timeouts, POOL_TIMEOUT_S, "503", "pool_timeout"),
        Outcome(EXCEPTIONS / 2, 0.03, "500", "exception"),
        status="200",
        median=shop.stock_s,
    )


def gateway_checkout(shop: Shop) -> tuple[Outcome, ...]:
    """Of the gateway's `/checkout`: what checkout answered, or nothing in time."""
    made: list[Outcome] = []
    late = 1.0 - below(GATEWAY_TIMEOUT_S, shop.before.checkout_s)
    for each in checkout_orders(shop.before)[:-1]:
        median = each.median + 0.006
        if not each.kind:
            made.append(Outcome(each.share * (1.0 - late), median, each.status))
            continue
        status = each.status if each.status != "500" else "502"
        made.append(Outcome(each.share * (1.0 - late), median, status, "upstream"))
    made.append(Outcome(late, GATEWAY_TIMEOUT_S, "504", "timeout"))
    return _rest(*made, status="200", median=shop.before.checkout_s + 0.006)


def gateway_products(shop: Shop) -> tuple[Outcome, ...]:
    """Of the gateway's `/products`, with what a crawler asks for in vain."""
    lost = shop.knob(Knob.CRAWLER) / (shop.looks + shop.knob(Knob.CRAWLER)) + 0.002
    found = 1.0 - lost
    full = shop.before.pool_timeouts
    return _rest(
        Outcome(found * shop.tls_failures, HANDSHAKE_S + 0.006, "502", "tls"),
        Outcome(found * (1.0 - shop.tls_failures) * full, POOL_TIMEOUT_S + 0.006, "502", "upstream"),
        Outcome(found * EXCEPTIONS / 2, 0.03, "502", "upstream"),
        Outcome(lost, 0.002, "404"),
        status="200",
        median=shop.before.stock_s + 0.006,
    )


def routes(shop: Shop) -> tuple[Route, ...]:
    """All routes of the shop."""
    through, stock = 1.0 - shop.tls_failures, stock_requests(shop)
    looks = shop.looks + shop.knob(Knob.CRAWLER)
    return (
        Route("gateway", "/checkout", "POST", shop.orders, gateway_checkout(shop)),
        Route("gateway", "/products", "GET", looks, gateway_products(shop)),
        Route("checkout", "/orders", "POST", shop.orders, checkout_orders(shop)),
        Route("stock", "/reserve", "POST", shop.orders * through, stock),
        Route("stock", "/availability", "GET", shop.looks * through, stock),
    )


def _to_stock(shop: Shop) -> tuple[Outcome, ...]:
    full, tls = shop.before.pool_timeouts, shop.tls_failures
    return _rest(
        Outcome(tls, HANDSHAKE_S, kind="tls"),
        Outcome((1.0 - tls) * full, POOL_TIMEOUT_S + NETWORK_S, kind="upstream"),
        Outcome((1.0 - tls) * EXCEPTIONS / 2, 0.03, kind="upstream"),
        status="",
        median=shop.before.stock_s + NETWORK_S,
    )


def _to_checkout(shop: Shop) -> tuple[Outcome, ...]:
    return tuple(
        Outcome(each.share, each.median + NETWORK_S, kind=each.kind) for each in checkout_orders(shop.before)
    )


def _to_database(shop: Shop) -> tuple[Outcome, ...]:
    return (Outcome(1.0, shop.before.query_s + 0.0004),)


def calls(shop: Shop) -> tuple[Call, ...]:
    """All calls between the shop's services, and to the payment company."""
    reserved = shop.orders * (1.0 - shop.tls_failures) * (1.0 - shop.before.pool_timeouts)
    paid = _rest(
        Outcome(shop.payments_errors, shop.payments_s, kind="upstream"), status="", median=shop.payments_s
    )
    return (
        Call("gateway", "checkout", shop.orders, _to_checkout(shop)),
        Call("gateway", "stock", shop.looks, _to_stock(shop)),
        Call("checkout", "stock", shop.orders, _to_stock(shop)),
        Call("checkout", "database", reserved * shop.queries_an_order, _to_database(shop)),
        Call("checkout", "payments", reserved, paid),
        Call("stock", "database", shop.stock_rate * 2.0, _to_database(shop)),
    )

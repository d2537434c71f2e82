"""The shop at a row of moments: how many requests, how long they take, how many fail. Pure.

A fault turns knobs of one service; callers feel it a scrape later, through the call graph and not otherwise.
Times of requests follow a log-logistic curve: `median`, and a tail that `SHAPE` fixes (p99 is 3.2 medians).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bot.incident.noise import Floats, key_of, wobble
from bot.incident.story import Knob, Story

SHAPE = 4.0
LAG_S = 15.0  # a caller's numbers follow those of what it calls
STOCK_POOL, CHECKOUT_POOL = 20, 30
QUERIES_A_SECOND = 2_600.0  # what the database can do
GATEWAY_TIMEOUT_S, PAYMENTS_TIMEOUT_S, POOL_TIMEOUT_S = 10.0, 8.0, 3.0


def knob(story: Story, name: Knob, at: Floats) -> Floats:
    """How far a knob is turned at each moment."""
    turned = np.full_like(at, 1.0 if name.multiplies else 0.0)
    minutes = (at - story.began_at) * (story.speed / 60.0)
    for effect in story.scenario.effects:
        if effect.knob is not name:
            continue
        grown = np.clip((minutes - effect.since) / effect.ramp, 0.0, 1.0)
        grown = grown * grown * (3.0 - 2.0 * grown)
        grown = grown * np.clip(1.0 - (minutes - effect.until) / effect.ramp, 0.0, 1.0)
        turned = (
            turned * (1.0 + (effect.amount - 1.0) * grown)
            if name.multiplies
            else turned + effect.amount * grown
        )
    return turned


def below(seconds: float, median: Floats) -> Floats:
    """The share of requests that took at most so long."""
    share: Floats = 1.0 / (1.0 + (median / seconds) ** SHAPE)
    return share


def mean_of(median: Floats) -> Floats:
    """The mean of the curve, from its median."""
    mean: Floats = median * float((np.pi / SHAPE) / np.sin(np.pi / SHAPE))
    return mean


@dataclass(frozen=True)
class Shop:
    """Everything that the metrics, logs and traces of these moments are made from."""

    story: Story
    at: Floats

    def noise(self, name: str, amount: float, every_s: float = 60.0) -> Floats:
        """A factor near 1."""
        return 1.0 + amount * wobble(key_of(self.story.seed, name), self.at, every_s)

    def knob(self, name: Knob) -> Floats:
        """How far a knob is turned."""
        return knob(self.story, name, self.at)

    @cached_property
    def before(self) -> Shop:
        """The shop that callers feel: a moment ago."""
        return Shop(self.story, self.at - LAG_S)

    @cached_property
    def visitors(self) -> Floats:
        """Requests a second at the door: little at night, most in the evening."""
        hours = (self.story.began_at + (self.at - self.story.began_at) * self.story.speed) / 3_600.0
        day = 1.0 + 0.32 * np.sin(2 * np.pi * (hours - 11.0) / 24.0) + 0.06 * np.sin(4 * np.pi * hours / 24.0)
        return 42.0 * day * self.noise("visitors", 0.05) * self.noise("visitors by the quarter", 0.05, 900.0)

    @cached_property
    def orders(self) -> Floats:
        """Of them, those that check out."""
        return self.visitors * 0.30 * self.noise("orders", 0.06)

    @cached_property
    def looks(self) -> Floats:
        """Of them, those that look at products."""
        return self.visitors * 0.70

    @cached_property
    def tls_failures(self) -> Floats:
        """The share of calls to stock that end in the handshake."""
        return self.knob(Knob.STOCK_TLS)

    @cached_property
    def stock_rate(self) -> Floats:
        """Requests that reach stock, from both callers."""
        return (self.orders + self.looks) * (1.0 - self.tls_failures)

    @cached_property
    def queries_an_order(self) -> Floats:
        """What checkout asks the database for one order."""
        return 6.0 * self.knob(Knob.CHECKOUT_QUERIES) * self.noise("queries", 0.03)

    @cached_property
    def database_load(self) -> Floats:
        """The share of the database's capacity in use."""
        queries = (
            self.orders * (1.0 - self.tls_failures) * self.queries_an_order + 2.0 * self.stock_rate + 15.0
        )
        return np.minimum(queries / QUERIES_A_SECOND, 0.9)

    @cached_property
    def query_s(self) -> Floats:
        """The median of one query."""
        return 0.003 / (1.0 - 0.75 * self.database_load) * self.noise("query", 0.05)

    @cached_property
    def pressure(self) -> Floats:
        """Share of the time in which stock waits for a processor."""
        return np.clip(0.02 * self.noise("pressure", 0.5) + self.knob(Knob.STOCK_PRESSURE), 0.0, 0.95)

    @cached_property
    def stock_in_use(self) -> Floats:
        """Connections of stock's pool that are taken."""
        working = self.stock_rate * (2.0 * self.before.query_s + 0.02) * self.noise("stock pool", 0.3)
        return np.minimum(working + self.knob(Knob.STOCK_LEAK), STOCK_POOL)

    @cached_property
    def stock_full(self) -> Floats:
        """How full stock's pool is: 0 with room, 1 when nothing is left."""
        return np.clip((self.stock_in_use - 0.85 * STOCK_POOL) / (0.15 * STOCK_POOL), 0.0, 1.0)

    @cached_property
    def stock_wait_s(self) -> Floats:
        """How long stock waits for a connection."""
        return 1.25 * self.stock_full**2 * self.noise("pool wait", 0.08)

    @cached_property
    def pool_timeouts(self) -> Floats:
        """The share of stock's requests that get no connection in time."""
        return 0.14 * self.stock_full**2

    @cached_property
    def stock_s(self) -> Floats:
        """The median of a request to stock."""
        own = 0.04 * (1.0 + 22.0 * self.pressure**2) * self.noise("stock", 0.05)
        return own + 2.0 * self.before.query_s + self.stock_wait_s

    @cached_property
    def payments_s(self) -> Floats:
        """The median of a call to the payment company."""
        return 0.11 * self.knob(Knob.PAYMENTS_LATENCY) * self.noise("payments", 0.06)

    @cached_property
    def payments_errors(self) -> Floats:
        """The share of calls to the payment company that fail; those past the limit count."""
        return 0.0006 + self.knob(Knob.PAYMENTS_ERRORS) + 1.0 - below(PAYMENTS_TIMEOUT_S, self.payments_s)

    @cached_property
    def checkout_s(self) -> Floats:
        """The median of an order that gets as far as its end."""
        queries = self.queries_an_order * self.before.query_s
        return 0.03 * self.noise("checkout", 0.05) + self.before.stock_s + queries + self.payments_s

    @cached_property
    def checkout_in_use(self) -> Floats:
        """Connections of checkout's pool that are taken."""
        busy = self.queries_an_order * self.before.query_s + 0.01
        return np.minimum(self.orders * busy * self.noise("checkout pool", 0.2) + 0.6, CHECKOUT_POOL)

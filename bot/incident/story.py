"""What a fault is made of, as data; and one telling of it: which fault, which seed, when its alert comes.

Minutes are minutes of the story, counted from its alert: what came before it is negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

HISTORY_S = 26 * 3_600  # metrics reach back so far before the alert
TICK_S = 15.0
SCRAPE_OFFSET_S = 3.25  # scrapes do not fall on full quarters of a minute


class Knob(StrEnum):
    """What a fault may change in the shop. `…_times` multiplies, the others add."""

    CHECKOUT_QUERIES = "checkout queries_times"
    CHECKOUT_CPU = "checkout cpu_times"
    STOCK_LEAK = "stock connections held"
    STOCK_PRESSURE = "stock cpu pressure"
    STOCK_TLS = "stock tls failures"
    PAYMENTS_LATENCY = "payments latency_times"
    PAYMENTS_ERRORS = "payments errors"
    INDEXER_CORES = "indexer cores"
    RESIZER_CORES = "resizer cores"
    CRAWLER = "crawler requests"

    @property
    def multiplies(self) -> bool:
        """Whether 1 is what changes nothing."""
        return self.value.endswith("_times")


@dataclass(frozen=True)
class Effect:
    """One change: it grows from `since` for `ramp` minutes and goes away at `until`."""

    knob: Knob
    amount: float
    since: float
    ramp: float = 1.0
    until: float = math.inf


@dataclass(frozen=True)
class Edit:
    """One place of one file; an empty `old` means that `new` is a new file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """One deploy: a commit on main that went out at once."""

    minute: float
    service: str
    version: str
    author: str
    subject: str
    body: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Notice:
    """A log line that is no request: once at `since`, or every so many minutes until `until`."""

    service: str
    level: str
    message: str
    since: float
    every: float = math.inf
    until: float = math.inf
    fields: tuple[tuple[str, str | int | float], ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One fault, or none. What is really wrong is not in here but in answers.py."""

    name: str
    alert: str
    effects: tuple[Effect, ...] = ()
    changes: tuple[Change, ...] = ()
    notices: tuple[Notice, ...] = ()
    stock_certificate_ends: float | None = None


@dataclass(frozen=True)
class Story:
    """One telling. `speed` 10 lets ten of its minutes pass in one; rates stay rates per second."""

    scenario: Scenario
    seed: int
    began_at: float
    speed: float = 1.0

    @property
    def origin(self) -> float:
        """The first scrape."""
        return math.floor((self.began_at - HISTORY_S) / TICK_S) * TICK_S + SCRAPE_OFFSET_S

    def moment(self, minute: float) -> float:
        """When a minute of the story is, in epoch seconds."""
        return self.began_at + minute * 60.0 / self.speed

    def minute(self, at: float) -> float:
        """Which minute of the story a moment is in."""
        return (at - self.began_at) * self.speed / 60.0

    def tick(self, at: float) -> int:
        """The last scrape that is not after the moment; below zero when there was none."""
        return math.floor((at - self.origin) / TICK_S)

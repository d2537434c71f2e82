"""The scrapes of a story up to now, kept as they are computed. Nothing after now is ever given out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.incident.columns import Labels, Stretch
from bot.incident.metrics import columns
from bot.incident.noise import Floats, Ints
from bot.incident.signals import Shop
from bot.incident.story import TICK_S, Story

CHUNK = 240  # scrapes that are computed at once, at least: an hour
PIECE = 24 * CHUNK
KEPT = 48 * CHUNK


@dataclass(frozen=True, eq=False)
class Series:
    """One series: when it was scraped and what it was; `ended` is when it was found gone."""

    labels: Labels
    times: Floats
    values: Floats
    ended: float = np.inf

    @property
    def name(self) -> str:
        """The metric's name."""
        return dict(self.labels)["__name__"]


class Samples:
    """The series of one story. May be asked from several threads."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._lock = threading.Lock()
        self._first = self._have = 0  # the scrapes that are kept: from, and up to
        self._values: dict[Labels, Floats] = {}
        self._seen: tuple[int, Sequence[Series]] = (-1, ())

    def upto(self, now: float) -> Sequence[Series]:
        """Every series as the scrapes of the last two days would have left it at `now`."""
        with self._lock:
            count = max(self.story.tick(now) + 1, 0)
            if self._seen[0] != count:
                self._grow(count)
                ticks = np.arange(max(count - KEPT, self._first), count, dtype=np.float64)
                times = self.story.origin + TICK_S * ticks
                part = slice(max(count - KEPT - self._first, 0), max(count - self._first, 0))
                found = (_series(labels, times, values[part]) for labels, values in self._values.items())
                self._seen = (count, tuple(each for each in found if len(each.times)))
            return self._seen[1]

    def _grow(self, count: int) -> None:
        """In pieces of a day, of which only the last are kept: a story may be told for weeks."""
        need = -(-count // CHUNK) * CHUNK
        while self._have < need:
            upto = min(need, self._have + PIECE)
            self._add(np.arange(self._have, upto, dtype=np.int64))
            self._have = upto
            surplus = upto - self._first - KEPT - CHUNK
            if surplus > 0:
                self._values = {labels: values[surplus:] for labels, values in self._values.items()}
                self._first += surplus

    def _add(self, ticks: Ints) -> None:
        shop = Shop(self.story, self.story.origin + TICK_S * ticks.astype(np.float64))
        for column in columns(Stretch(shop, ticks)):
            values, kept = column.values, self._values.get(column.labels)
            if column.counter:  # one after the other: the sum does not depend on where a piece ends
                start = kept[-1] if kept is not None else 0.0
                values = np.cumsum(np.concatenate(([start], values)))[1:]
            self._values[column.labels] = values if kept is None else np.concatenate((kept, values))


def _series(labels: Labels, times: Floats, values: Floats) -> Series:
    """Without the scrapes in which it was not there."""
    there = np.flatnonzero(~np.isnan(values))
    if len(there) == len(times):
        return Series(labels, times, values)
    if not len(there):
        return Series(labels, times[:0], values[:0])
    first, last = int(there[0]), int(there[-1])
    ended = float(times[last + 1]) if last + 1 < len(times) else np.inf
    return Series(labels, times[first : last + 1], values[first : last + 1], ended)

"""The scrapes of a story up to now, kept as they are computed. Nothing after now is ever given out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.incident.columns import Labels, Stretch
from bot.incident.metrics import columns
from bot.incident.noise import Floats
from bot.incident.signals import Shop
from bot.incident.story import TICK_S, Story

CHUNK = 240  # scrapes that are computed at once: an hour


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
        self._have = 0
        self._values: dict[Labels, Floats] = {}
        self._seen: tuple[int, Sequence[Series]] = (-1, ())

    def upto(self, now: float) -> Sequence[Series]:
        """Every series as a scrape at `now` would have left it."""
        with self._lock:
            count = self.story.tick(now) + 1
            if self._seen[0] != count:
                self._grow(count)
                times = self.story.origin + TICK_S * np.arange(max(count, 0), dtype=np.float64)
                found = (_series(labels, times, values) for labels, values in self._values.items())
                self._seen = (count, tuple(each for each in found if len(each.times)))
            return self._seen[1]

    def _grow(self, count: int) -> None:
        need = -(-count // CHUNK) * CHUNK
        if need <= self._have:
            return
        ticks = np.arange(self._have, need, dtype=np.int64)
        shop = Shop(self.story, self.story.origin + TICK_S * ticks.astype(np.float64))
        for column in columns(Stretch(shop, ticks)):
            values, kept = column.values, self._values.get(column.labels)
            if column.counter:  # one after the other: the sum does not depend on where a chunk ends
                start = kept[-1] if kept is not None else 0.0
                values = np.cumsum(np.concatenate(([start], values)))[1:]
            self._values[column.labels] = values if kept is None else np.concatenate((kept, values))
        self._have = need


def _series(labels: Labels, times: Floats, values: Floats) -> Series:
    """Without the scrapes in which it was not there."""
    values = values[: len(times)]
    there = np.flatnonzero(~np.isnan(values))
    if len(there) == len(times):
        return Series(labels, times, values)
    if not len(there):
        return Series(labels, times[:0], values[:0])
    first, last = int(there[0]), int(there[-1])
    ended = float(times[last + 1]) if last + 1 < len(times) else np.inf
    return Series(labels, times[first : last + 1], values[first : last + 1], ended)

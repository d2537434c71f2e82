"""Numbers of one stretch of scrapes, a column a series: gauges as they are, counters as what came since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bot.incident.noise import Floats, Ints, key_of, uniform
from bot.incident.signals import Shop, below, mean_of
from bot.incident.story import TICK_S

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PORT = 8080

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Column:
    """One series of one stretch. NaN is a scrape in which the series was not there."""

    labels: Labels
    values: Floats
    counter: bool


@dataclass(frozen=True)
class Outcome:
    """One way in which a share of requests ends."""

    share: Floats | float
    median: Floats | float
    status: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Stretch:
    """Scrapes next to each other, of one story."""

    shop: Shop
    ticks: Ints

    def column(self, job: str, name: str, values: Floats, *, counter: bool, **labels: str) -> Column:
        """A series of one job; what is scraped from a service names it."""
        named = {"__name__": name, "job": job, "instance": f"{job}:{PORT}", **labels}
        return Column(tuple(sorted(named.items())), values, counter)

    def gauge(self, service: str, name: str, values: Floats | float, **labels: str) -> Column:
        """A gauge of a service."""
        filled = np.broadcast_to(np.asarray(values, dtype=np.float64), self.ticks.shape)
        return self.column(service, name, filled, counter=False, service=service, **labels)

    def counter(self, service: str, name: str, values: Floats, **labels: str) -> Column:
        """A counter of a service, given as what came with each scrape."""
        return self.column(service, name, values, counter=True, service=service, **labels)

    def chance(self, name: str) -> Floats:
        """One even number for each scrape: rounds parts of a request up or down without losing any."""
        return uniform(key_of(self.shop.story.seed, name), self.ticks)

    def counted(self, name: str, per_second: Floats) -> Floats:
        """Whole numbers whose mean is the rate."""
        return np.floor(per_second * TICK_S + self.chance(name))

    def parted(self, name: str, whole: Floats, shares: Sequence[Floats | float]) -> Iterator[Floats]:
        """Whole numbers that divide `whole` by the shares; their sum is exact."""
        chance, taken, done = self.chance(name), np.zeros_like(whole), np.zeros_like(whole)
        for number, share in enumerate(shares, 1):
            taken = taken + share
            upto = whole if number == len(shares) else np.minimum(np.floor(whole * taken + chance), whole)
            yield upto - done
            done = upto

    def histogram(
        self, service: str, name: str, count: Floats, outcomes: Sequence[Outcome], **labels: str
    ) -> Iterator[Column]:
        """Buckets, sum and count of times that are a mixture of the outcomes' curves."""
        chance = self.chance(f"{service} {name} {sorted(labels.items())}")
        medians = [
            np.broadcast_to(np.asarray(each.median, dtype=np.float64), count.shape) for each in outcomes
        ]
        total = np.zeros_like(count)
        for each, median in zip(outcomes, medians, strict=True):
            total = total + each.share * mean_of(median)
        for edge in BUCKETS:
            share = np.zeros_like(count)
            for each, median in zip(outcomes, medians, strict=True):
                share = share + each.share * below(edge, median)
            upto = np.minimum(np.floor(count * share + chance), count)
            yield self.counter(service, f"{name}_bucket", upto, le=f"{edge:g}", **labels)
        yield self.counter(service, f"{name}_bucket", count, le="+Inf", **labels)
        yield self.counter(service, f"{name}_sum", np.round(count * total, 6), **labels)
        yield self.counter(service, f"{name}_count", count, **labels)

    def requests(
        self, service: str, route: str, method: str, rate: Floats, outcomes: Sequence[Outcome]
    ) -> Iterator[Column]:
        """What a service tells of one route: counts by status and their times."""
        count = self.counted(f"{service} {route}", rate)
        by_status: dict[str, Floats] = {}
        parts = self.parted(f"{service} {route} by status", count, [each.share for each in outcomes])
        for outcome, part in zip(outcomes, parts, strict=True):
            by_status[outcome.status] = by_status.get(outcome.status, np.zeros_like(part)) + part
        for status, part in by_status.items():
            yield self.counter(
                service, "http_requests_total", part, route=route, method=method, status=status
            )
        yield from self.histogram(service, "http_request_duration_seconds", count, outcomes, route=route)

    def dependency(
        self, service: str, dependency: str, rate: Floats, outcomes: Sequence[Outcome]
    ) -> Iterator[Column]:
        """What a service tells of one that it calls; outcomes with a kind are errors."""
        count = self.counted(f"{service} to {dependency}", rate)
        failed = sum((each.share for each in outcomes if each.kind), np.zeros_like(count))
        errors, well = self.parted(f"{service} to {dependency} by outcome", count, [failed, 1.0 - failed])
        for outcome, part in (("ok", well), ("error", errors)):
            yield self.counter(
                service, "dependency_requests_total", part, dependency=dependency, outcome=outcome
            )
        yield from self.histogram(
            service, "dependency_request_duration_seconds", count, outcomes, dependency=dependency
        )


def errors(
    stretch: Stretch, service: str, routes: Iterable[tuple[str, Floats, Sequence[Outcome]]]
) -> Iterator[Column]:
    """Errors by kind, over all routes of a service."""
    kinds: dict[str, Floats] = {}
    for route, rate, outcomes in routes:
        count = stretch.counted(f"{service} {route}", rate)
        parts = stretch.parted(f"{service} {route} by status", count, [each.share for each in outcomes])
        for outcome, part in zip(outcomes, parts, strict=True):
            if outcome.kind:
                kinds[outcome.kind] = kinds.get(outcome.kind, np.zeros_like(part)) + part
    for kind, values in kinds.items():
        yield stretch.counter(service, "errors_total", values, kind=kind)

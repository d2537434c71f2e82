"""What is worth knowing of a time series, in one line for the model: not the points, but what they did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.tools.prometheus_time import iso

MOST_SERIES = 20
FLAT = 0.05  # less change than this share of the range's level over the whole time is no trend
GOOD_FIT = 0.25  # share of the movement that a line explains (r²); below it is noise

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its labels and its points, oldest first."""

    labels: Mapping[str, str]
    points: Points

    @property
    def name(self) -> str:
        """The series as PromQL writes it."""
        pairs = ", ".join(f'{key}="{value}"' for key, value in self.labels.items() if key != "__name__")
        return f"{self.labels.get('__name__', '')}{{{pairs}}}"


def number(value: float) -> str:
    """A value in at most six digits, large ones with a unit."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    size = abs(value)
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if size >= limit:
            return f"{value / limit:.4g}{unit}"
    return f"{value:.6g}" if size < 1e5 else f"{value:.0f}"


def describe(series: Series, step: float) -> str:
    """First, last, extremes, mean, 95th percentile, trend, the biggest jump and the gaps."""
    whole = [(at, value) for at, value in series.points if not math.isnan(value)]
    if not whole:
        return f"{series.name}: only NaN"
    values = [value for _, value in whole]
    if min(values) == max(values):
        told = (
            f"constant {number(values[0])} ({len(values)} points, {iso(whole[0][0])} to {iso(whole[-1][0])})"
        )
    else:
        told = _moving(whole, values)
    extra = [_gaps(series.points, step)]
    if len(whole) < len(series.points):
        extra.append(f"{len(series.points) - len(whole)} points are NaN")
    return f"{series.name}: " + "; ".join([told, *(words for words in extra if words)])


def _moving(points: Points, values: Sequence[float]) -> str:
    low = min(points, key=lambda point: point[1])
    high = max(points, key=lambda point: point[1])
    return "; ".join(
        [
            f"first {number(values[0])}, last {number(values[-1])}",
            f"min {number(low[1])} at {iso(low[0])}, max {number(high[1])} at {iso(high[0])}",
            f"mean {number(mean(values))}, p95 {number(percentile(values, 95))}",
            trend(points),
            jump(points),
        ]
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: a value that did occur."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def mean(values: Sequence[float]) -> float:
    """The mean of the finite values; scaled, because Prometheus' floats go to the limit."""
    finite = [value for value in values if math.isfinite(value)]
    scale = max(map(abs, finite), default=0.0) or 1.0
    return math.fsum(value / scale for value in finite) / max(1, len(finite)) * scale


def trend(points: Points) -> str:
    """Up, down or flat, by least squares over the whole range; a line that fits badly is no trend."""
    finite = [(at, value) for at, value in points if math.isfinite(value)]
    scale = max((abs(value) for _, value in finite), default=0.0)
    if len(finite) < 3 or not scale:
        return "no trend: too few points"
    middle, level = mean([at for at, _ in finite]), mean([value / scale for _, value in finite])
    across = [(at - middle, value / scale - level) for at, value in finite]
    spread, height = math.fsum(x * x for x, _ in across), math.fsum(y * y for _, y in across)
    together = math.fsum(x * y for x, y in across)
    change = together / spread * (finite[-1][0] - finite[0][0]) if spread else 0.0
    fits = height > 0 and together * together >= GOOD_FIT * spread * height
    if not fits or abs(change) <= FLAT * mean([abs(value) / scale for _, value in finite]):
        return "trend flat"
    up = change > 0
    return f"trend {'up' if up else 'down'} ({'+' if up else ''}{number(change * scale)} over the range)"


def jump(points: Points) -> str:
    """The biggest step from one point to the next."""
    finite = [(a, b) for a, b in pairwise(points) if math.isfinite(a[1]) and math.isfinite(b[1])]
    if not finite:
        return "no jump"
    before, after = max(finite, key=lambda pair: abs(pair[1][1] / 2 - pair[0][1] / 2))
    return f"biggest jump {number(before[1])} → {number(after[1])} at {iso(after[0])}"


def _gaps(points: Points, step: float) -> str:
    holes = [(a[0], b[0]) for a, b in pairwise(points) if b[0] - a[0] > 1.5 * step]
    if not holes:
        return ""
    shown = ", ".join(f"{iso(start)} to {iso(end)}" for start, end in holes[:3])
    return f"{len(holes)} gap(s) without data: {shown}{', …' if len(holes) > 3 else ''}"

"""Functions over ranges and over instant vectors, each for all steps at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import numpy as np

from bot.incident.noise import Floats
from bot.incident.patterns import BadPattern, compiled
from bot.incident.promql.errors import PromqlError
from bot.incident.promql.values import Row, Truths, Vector, Window, distinct, without_name

LATEST = 2.0e11  # seconds that a calendar knows
BLOCK = 2_000_000  # numbers gathered at once
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

Found = tuple[Floats, Truths]


def _ends(window: Window) -> tuple[Floats, Floats, Floats, Floats]:
    """First and last scrape of each step: times and values, where there is one."""
    high = len(window.times) - 1
    first, last = np.clip(window.first, 0, high), np.clip(window.last, 0, high)
    return window.times[first], window.times[last], window.values[first], window.values[last]


def _extrapolated(window: Window, counter: bool, per_second: bool) -> Found:
    """Prometheus' rule: the change between scrapes, stretched to the edges of the range if they are near."""
    counts, there = window.counts, window.counts >= 2
    begin, end, first, last = _ends(window)
    change = last - first
    if counter:
        fell = np.diff(window.values) < 0
        lost = np.concatenate(([0.0], np.cumsum(np.where(fell, window.values[:-1], 0.0))))
        high = len(lost) - 1
        change = change + lost[np.clip(window.last, 0, high)] - lost[np.clip(window.first, 0, high)]
    sampled = np.where(there, end - begin, 1.0)
    between = sampled / np.maximum(counts - 1, 1)
    to_start, to_end = begin - window.starts, window.ends - end
    if counter:
        falls = (change > 0) & (first >= 0)
        to_zero = np.where(falls, sampled * first / np.where(falls, change, 1.0), np.inf)
        to_start = np.minimum(to_start, to_zero)
    covered = sampled + np.where(to_start < between * 1.1, to_start, between / 2)
    covered = covered + np.where(to_end < between * 1.1, to_end, between / 2)
    result = change * (covered / sampled)
    return (result / (window.ends - window.starts) if per_second else result), there


def _latest_two(window: Window, per_second: bool) -> Found:
    there, high = window.counts >= 2, len(window.times) - 1
    last = np.clip(window.last, 0, high)
    before = np.clip(window.last - 1, 0, high)
    change = window.values[last] - window.values[before]
    if not per_second:
        return change, there
    change = np.where(change < 0, window.values[last], change)
    return change / np.where(there, window.times[last] - window.times[before], 1.0), there


def _blocks(window: Window) -> Iterator[tuple[slice, Floats, Floats, Truths]]:
    """The scrapes of each step side by side, in blocks that fit: steps, times, values, which count."""
    widest = max(int(window.counts.max(initial=0)), 1)
    rows, reach = max(BLOCK // widest, 1), np.arange(widest)
    for start in range(0, len(window.first), rows):
        part = slice(start, start + rows)
        index = window.first[part, None] + reach[None, :]
        counts = index <= window.last[part, None]
        index = np.clip(index, 0, max(len(window.times) - 1, 0))
        yield part, window.times[index], window.values[index], counts


def _over(window: Window, made: Callable[[Floats, Truths], Floats]) -> Found:
    result = np.full(len(window.first), np.nan)
    for part, _, values, counts in _blocks(window):
        result[part] = made(values, counts)
    return result, window.counts >= 1


def _total(window: Window, *, mean: bool) -> Found:
    """Sum or mean from sums up to each scrape: the length of the range does not matter."""
    if not np.isfinite(window.values).all():
        return _over(window, _mean if mean else _sum)
    counts, base = np.maximum(window.counts, 1), float(window.values[0])
    upto = np.concatenate(([0.0], np.cumsum(window.values - base)))
    high = len(upto) - 1
    more = upto[np.clip(window.last + 1, 0, high)] - upto[np.clip(window.first, 0, high)]
    return (base + more / counts if mean else base * counts + more), window.counts >= 1


def _sum(values: Floats, counts: Truths) -> Floats:
    total: Floats = np.where(counts, values, 0.0).sum(axis=1)
    return total


def _mean(values: Floats, counts: Truths) -> Floats:
    mean: Floats = _sum(values, counts) / np.maximum(counts.sum(axis=1), 1)
    return mean


def _variance(values: Floats, counts: Truths) -> Floats:
    centred = values - _mean(values, counts)[:, None]
    return _mean(centred * centred, counts)


def _deviation(values: Floats, counts: Truths) -> Floats:
    return np.sqrt(_variance(values, counts))


def _min(values: Floats, counts: Truths) -> Floats:
    least: Floats = np.fmin.reduce(np.where(counts, values, np.nan), axis=1)
    return least


def _max(values: Floats, counts: Truths) -> Floats:
    most: Floats = np.fmax.reduce(np.where(counts, values, np.nan), axis=1)
    return most


def quantile(values: Floats, counts: Truths, share: Floats) -> Floats:
    """Of each line, between its neighbours; Prometheus' rule for shares outside 0 to 1."""
    ordered = np.sort(np.where(counts, values, np.inf), axis=1)
    number = counts.sum(axis=1)
    rank = np.clip(share, 0.0, 1.0) * np.maximum(number - 1, 0)
    lower = np.floor(np.nan_to_num(rank)).astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(number - 1, 0))
    lines = np.arange(len(ordered))
    weight = rank - lower
    found = ordered[lines, lower] * (1.0 - weight) + ordered[lines, upper] * weight
    found = np.where(share < 0, -np.inf, np.where(share > 1, np.inf, found))
    return np.where(np.isnan(share) | (number == 0), np.nan, found)


def quantile_over_time(window: Window, share: Floats) -> Found:
    """Of the scrapes of each step."""
    result = np.full(len(window.first), np.nan)
    for part, _, values, counts in _blocks(window):
        result[part] = quantile(values, counts, share[part])
    return result, window.counts >= 1


def line(window: Window, ahead: Floats | None, now: Floats) -> Found:
    """Least squares: the slope, or where the line is so many seconds after the step."""
    result = np.full(len(window.first), np.nan)
    for part, times, values, counts in _blocks(window):
        past = times - now[part, None]
        mean_time, mean_value = _mean(past, counts), _mean(values, counts)
        off = past - mean_time[:, None]
        spread = _sum(off * off, counts)
        slope = _sum(off * (values - mean_value[:, None]), counts) / np.where(spread > 0, spread, 1.0)
        result[part] = slope if ahead is None else mean_value + slope * (ahead[part] - mean_time)
    return result, window.counts >= 2


def _steps_where(window: Window, happened: Callable[[Floats, Floats], Truths]) -> Found:
    hits = np.concatenate(([0], np.cumsum(happened(window.values[:-1], window.values[1:])))).astype(
        np.float64
    )
    high = len(hits) - 1
    return hits[np.clip(window.last, 0, high)] - hits[np.clip(window.first, 0, high)], window.counts >= 1


def _last(window: Window) -> Found:
    return _ends(window)[3], window.counts >= 1


OVER_RANGES: Mapping[str, Callable[[Window], Found]] = {
    "rate": lambda window: _extrapolated(window, counter=True, per_second=True),
    "increase": lambda window: _extrapolated(window, counter=True, per_second=False),
    "delta": lambda window: _extrapolated(window, counter=False, per_second=False),
    "irate": lambda window: _latest_two(window, per_second=True),
    "idelta": lambda window: _latest_two(window, per_second=False),
    "deriv": lambda window: line(window, None, window.ends),
    "changes": lambda window: _steps_where(window, lambda before, after: before != after),
    "resets": lambda window: _steps_where(window, lambda before, after: after < before),
    "sum_over_time": lambda window: _total(window, mean=False),
    "avg_over_time": lambda window: _total(window, mean=True),
    "min_over_time": lambda window: _over(window, _min),
    "max_over_time": lambda window: _over(window, _max),
    "stdvar_over_time": lambda window: _over(window, _variance),
    "stddev_over_time": lambda window: _over(
        window, lambda values, counts: np.sqrt(_variance(values, counts))
    ),
    "count_over_time": lambda window: (window.counts.astype(np.float64), window.counts >= 1),
    "present_over_time": lambda window: (np.ones(len(window.first)), window.counts >= 1),
    "last_over_time": _last,
}

KEEP_NAME = frozenset({"last_over_time"})

OVER_VALUES: Mapping[str, Callable[[Floats], Floats]] = {
    "abs": np.abs, "ceil": np.ceil, "floor": np.floor, "exp": np.exp, "ln": np.log, "log2": np.log2,
    "log10": np.log10, "sqrt": np.sqrt, "sgn": np.sign,
}  # fmt: skip

CALENDAR: Mapping[str, Callable[[datetime], int]] = {
    "hour": lambda at: at.hour, "minute": lambda at: at.minute, "day_of_month": lambda at: at.day,
    "day_of_week": lambda at: at.isoweekday() % 7, "month": lambda at: at.month,
}  # fmt: skip


def calendar(name: str, values: Floats) -> Floats:
    """Hour, minute, day… of epoch seconds, in UTC."""
    part = CALENDAR[name]
    known = np.isfinite(values) & (np.abs(values) < LATEST)
    found = [
        part(datetime.fromtimestamp(each, UTC)) if here else np.nan
        for each, here in zip(values, known, strict=True)
    ]
    return np.array(found, dtype=np.float64)


def rounded(values: Floats, to: Floats) -> Floats:
    """To the nearest multiple; halves go up."""
    return np.floor(values / to + 0.5) * to


def histogram_quantile(share: Floats, rows: Vector) -> Vector:
    """From cumulative buckets, evenly spread within each."""
    groups: dict[tuple[tuple[str, str], ...], dict[float, Row]] = {}
    for row in rows:
        edge = dict(row.labels).get("le")
        try:
            upper = float(edge) if edge is not None else np.nan
        except ValueError:
            continue
        if np.isnan(upper):
            continue
        rest = tuple(pair for pair in without_name(row.labels) if pair[0] != "le")
        group = groups.setdefault(rest, {})
        if upper in group:
            raise PromqlError("vector cannot contain metrics with the same labelset")
        group[upper] = row
    return [Row(labels, *_bucket_quantile(share, group)) for labels, group in groups.items()]


def _bucket_quantile(share: Floats, group: Mapping[float, Row]) -> Found:
    edges = np.array(sorted(group))
    there = np.any([group[edge].there for edge in edges], axis=0)
    if len(edges) < 2 or not np.isinf(edges[-1]):
        return np.full(len(share), np.nan), there
    counts = np.array([np.where(group[edge].there, group[edge].values, 0.0) for edge in edges])
    counts = np.maximum.accumulate(counts, axis=0)
    total = counts[-1]
    rank = share * total
    place = np.minimum((counts < rank).sum(axis=0), len(edges) - 1)
    steps = np.arange(len(share))
    below = np.where(place > 0, counts[np.maximum(place - 1, 0), steps], 0.0)
    start = np.where(place > 0, edges[np.maximum(place - 1, 0)], 0.0)
    inside = counts[place, steps] - below
    width = np.where(np.isinf(edges[place]), 0.0, edges[place] - start)
    found = start + width * (rank - below) / np.where(inside > 0, inside, 1.0)
    found = np.where((place == 0) & (edges[0] <= 0), edges[0], found)
    found = np.where(place == len(edges) - 1, edges[-2], found)
    found = np.where(share < 0, -np.inf, np.where(share > 1, np.inf, found))
    return np.where((total == 0) | np.isnan(share) | np.isnan(total), np.nan, found), there


def label_replace(rows: Vector, target: str, template: str, source: str, pattern: str) -> Vector:
    """A label made from another where the pattern matches all of it."""
    if not _LABEL.fullmatch(target):
        raise PromqlError(f"invalid destination label name in label_replace(): {target}")
    try:
        matcher = compiled(pattern)
    except BadPattern as error:
        raise PromqlError(f"invalid regular expression in label_replace(): {error}") from None
    made = []
    for row in rows:
        labels = dict(row.labels)
        if match := matcher.fullmatch(labels.get(source, "")):
            labels[target] = _filled(template, match)
            labels = {key: value for key, value in labels.items() if value}
        made.append(Row(tuple(sorted(labels.items())), row.values, row.there))
    return distinct(made)


def _filled(template: str, match: re.Match[str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda hole: _group(match, hole[1]), template)


def _group(match: re.Match[str], name: str) -> str:
    try:
        return match[int(name) if name.isdigit() else name] or ""
    except IndexError:
        return ""

"""What many log lines say, in few: how many over time by level, the patterns, the first and the last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from bot.tools.clean import one_line
from bot.tools.logs_lines import LEVELS, UNKNOWN, Line
from bot.tools.prometheus_stats import Series, describe
from bot.tools.prometheus_time import iso

MOST_PATTERNS = 12
MOST_STREAMS = 6
ENDS = 3  # lines shown at either end
LONGEST_LINE = 400
LONG_RANGE_S = 4 * 3_600
SHORT_RANGE_S = 600
ORDER = (*LEVELS, UNKNOWN)


def bucket(seconds: float) -> float:
    """Counts are per minute, but for very short and very long ranges."""
    if seconds <= SHORT_RANGE_S:
        return 10.0
    return 60.0 if seconds <= LONG_RANGE_S else max(60.0, seconds // 240 // 60 * 60)


def counts(lines: Sequence[Line], start: float, end: float, width: float) -> list[Series]:
    """Lines per bucket for each level, the most serious first; a bucket without a line counts zero."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for line in lines:
        found[line.level][int(line.at // width)] += 1
    buckets = range(int(start // width), int(max(start, end - 0.001) // width) + 1)
    return [
        Series({"level": level}, [(n * width, float(found[level][n])) for n in buckets])
        for level in sorted(found, key=ORDER.index)
    ]


def by_level(counted: Sequence[Series], width: float) -> list[Series]:
    """What Loki counted, one series for each level; its point at a time counts what came before it."""
    found: dict[str, Counter[float]] = defaultdict(Counter)
    for each in counted:
        level = Line(0, each.labels, "").level
        for at, value in each.points:
            found[level][at - width] += int(value)
    times = sorted({at for points in found.values() for at in points})
    return [
        Series({"level": level}, [(at, float(found[level][at])) for at in times])
        for level in sorted(found, key=ORDER.index)
    ]


def told_counts(series: Sequence[Series], width: float) -> list[str]:
    """One line for each level, or for each series that Loki counted."""
    unit = "minute" if width == 60 else f"{width:g} s"
    return [
        f"{each.labels.get('level') or each.name}: {sum(value for _, value in each.points):.0f} lines; "
        f"per {unit}: {describe(each, width).removeprefix(each.name + ': ')}"
        for each in series
    ]


def patterns(lines: Sequence[Line]) -> list[str]:
    """The most frequent messages with what differs masked, each with an example."""
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.level, line.pattern].append(line)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    shown = ranked[:MOST_PATTERNS]
    told = [f"{len(groups)} message patterns, the most frequent first:"]
    for (level, pattern), members in shown:
        times = [line.at for line in members]
        told.append(f"{len(members)}x {level}, {iso(min(times))} to {iso(max(times))}: {one_line(pattern)}")
        if one_line(members[0].text, LONGEST_LINE) != one_line(pattern):
            told.append(f"    such as: {one_line(members[0].text, LONGEST_LINE)}")
    if len(ranked) > len(shown):
        rest = sum(len(members) for _, members in ranked[MOST_PATTERNS:])
        told.append(
            f"{len(ranked) - len(shown)} more patterns ({rest} lines) are not shown; filter with |= or !=."
        )
    return told


def streams(lines: Sequence[Line]) -> str:
    """From which streams the lines come: the labels that differ."""
    common = set(lines[0].labels.items())
    for line in lines:
        common &= line.labels.items()
    counted = Counter(
        ", ".join(
            f'{key}="{value}"' for key, value in sorted(line.labels.items()) if (key, value) not in common
        )
        for line in lines
    )
    same = ", ".join(f'{key}="{value}"' for key, value in sorted(common))
    if len(counted) == 1:
        return f"all from {{{same}}}"
    parts = [f"{{{labels}}} {count}" for labels, count in counted.most_common(MOST_STREAMS)]
    more = f" and {len(counted) - MOST_STREAMS} more" if len(counted) > MOST_STREAMS else ""
    return f"from {len(counted)} streams{f' of {{{same}}}' if same else ''}: {'; '.join(parts)}{more}"


def ends(lines: Sequence[Line]) -> list[str]:
    """The first and the last lines as they are."""
    if len(lines) <= 2 * ENDS:
        return ["all lines:", *(_shown(line) for line in lines)]
    return [
        "first lines:",
        *(_shown(line) for line in lines[:ENDS]),
        "last lines:",
        *(_shown(line) for line in lines[-ENDS:]),
    ]


def _shown(line: Line) -> str:
    return f"{iso(line.at)} {one_line(line.text, LONGEST_LINE)}"

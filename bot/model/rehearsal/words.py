"""Numbers and times of the rehearsal in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CLOCK = re.compile(r"T(\d\d:\d\d)")


def clock(time: str) -> str:
    """Hours and minutes of a time as tools write it."""
    found = _CLOCK.search(time)
    return f"{found[1]}Z" if found else "an unknown time"


def took(seconds: float | None) -> str:
    """A duration of a request."""
    if seconds is None:
        return "unknown"
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1_000:.1f} ms"
    return f"{seconds:.1f} s"


def count(value: float | None) -> str:
    """A number in two or three digits."""
    if value is None:
        return "unknown"
    return f"{value:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def share(value: float | None) -> str:
    """A share as a percentage."""
    if value is None:
        return "unknown"
    return f"{value * 100:.1f} %" if value < 0.1 else f"{value * 100:.0f} %"


def span_words(seconds: float) -> str:
    """A long duration in its largest unit."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def listed(parts: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))

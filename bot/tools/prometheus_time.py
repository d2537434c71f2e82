"""Times and steps as the model writes them: RFC 3339, epoch seconds, "now", or relative like "-1h" and "now-30m".

Durations are Prometheus' own: https://prometheus.io/docs/prometheus/latest/querying/basics/#float-literals-and-time-durations
"""  # noqa: E501 — the address

from __future__ import annotations

import re
from datetime import UTC, datetime

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
TIME_WORDS = 'RFC 3339 ("2026-01-31T14:05:00Z"), epoch seconds, "now", or relative ("-1h", "now-30m")'
MOST_POINTS = (
    11_000  # Prometheus refuses more for each series ("exceeded maximum resolution of 11,000 points")
)
GOOD_POINTS = 240
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)

_DURATION = re.compile(r"(?:[0-9]{1,12}(?:\.[0-9]{1,6})?(?:ms|[smhdwy])){1,7}")
_PART = re.compile(r"([0-9.]+)(ms|[smhdwy])")


def duration(text: str) -> float | None:
    """Seconds of a duration like "90s", "1h30m" or a plain number; None when it is none."""
    text = text.strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e12 else None


def moment(text: str, now: float) -> float | None:
    """Epoch seconds of a time; None when it is none."""
    text = text.strip()
    if text in ("", "now"):
        return now
    relative = text.removeprefix("now").strip()
    if relative[:1] in "+-" and (ago := duration(relative[1:])) is not None:
        return now - ago if relative[0] == "-" else now + ago
    try:
        seconds = float(text)
    except ValueError:
        return _rfc3339(text)
    if 1e11 < seconds < 1e14:  # milliseconds, as in the addresses of dashboards
        seconds /= 1_000
    return seconds if 0 < seconds < 1e11 else None


def good_step(seconds: float) -> float:
    """A round step that shows a range in a few hundred points."""
    return float(next((step for step in STEPS if seconds / step <= GOOD_POINTS), STEPS[-1]))


def iso(at: float) -> str:
    """RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(start: float, end: float) -> str:
    """A range in words."""
    return f"{iso(start)} to {iso(end)}"


def _rfc3339(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text.replace("z", "Z").replace("Z", "+00:00"))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()

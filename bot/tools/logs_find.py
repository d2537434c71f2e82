"""Labels of the logs, and what is near to a selector that found nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from difflib import get_close_matches

from bot.tools.clean import one_line
from bot.tools.logs_api import LogsApi, Refused

MOST_LABELS = 20
FEW_VALUES = 10
MOST_VALUES = 200

_MATCHER = re.compile(
    r"([A-Za-z_]\w{0,99})\s{0,9}(=~|!=|!~|=)\s{0,9}(?:\"((?:[^\"\\]|\\.){0,300})\"|`([^`]{0,300})`)"
)


async def overview(api: LogsApi, label: str, bounds: Mapping[str, str]) -> str:
    """One label with many values, or all labels with a few each."""
    if label:
        values = await api.values(label, bounds)
        if values:
            return f"{label} has {len(values)} values: {_listed(values, MOST_VALUES)}"
        known = await api.labels(bounds)
        return f"the logs have no label {label!r} in this range; labels: {_listed(known, MOST_VALUES)}"
    known = await api.labels(bounds)
    if not known:
        return "there are no labels in this range: no logs, or none that match. Try a longer range."
    shown = known[:MOST_LABELS]
    found = await asyncio.gather(*(api.values(name, bounds) for name in shown))
    lines = [
        f"{name} ({len(values)}): {_listed(values, FEW_VALUES)}"
        for name, values in zip(shown, found, strict=True)
    ]
    if len(known) > len(shown):
        lines.append(f"and the labels {_listed(known[MOST_LABELS:], MOST_VALUES)}")
    return "\n".join(lines)


async def nearest(api: LogsApi, query: str, bounds: Mapping[str, str]) -> str:
    """Which label or value of the query is not there, and what is near to it."""
    matchers = [
        (found[1], found[3] or found[4] or "")
        for found in _MATCHER.finditer(query[: query.find("}") + 1])
        if found[2] == "="
    ]
    try:
        known = await api.labels(bounds)
        for label, value in matchers[:5]:
            if label not in known:
                near = get_close_matches(label, known, n=3, cutoff=0.5) or known[:MOST_LABELS]
                return f"There is no label {label} in this range; there are: {', '.join(near)}."
            values = await api.values(label, bounds)
            if value not in values:
                near = get_close_matches(value, values, n=5, cutoff=0.5) or values[:FEW_VALUES]
                return f"{label} has no value {value!r} in this range; near to it: {', '.join(near)}."
    except Refused:
        return ""
    return "The labels exist; loosen the filters or take a longer range."


def _listed(values: list[str], most: int) -> str:
    text = ", ".join(one_line(value, 100) for value in values[:most])
    return f"{text} and {len(values) - most} more" if len(values) > most else text

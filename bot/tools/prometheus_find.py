"""Finding metrics: by pattern for a model that looks around, by likeness for one whose query had no data."""

from __future__ import annotations

import re
from difflib import get_close_matches

from bot.tools.prometheus_api import PrometheusApi, Refused
from core.history import Json

MOST_NAMES = 60
MOST_LABELLED = 5
MOST_LABEL_VALUES = 8

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_NOISE = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\{[^{}]*\}|\[[^\[\]]*\]"
    r"|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)"
)
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "atan2", "start", "end", "inf", "nan"})


async def nearest(api: PrometheusApi, query: str) -> str:
    """For a query without data: which of its metrics do not exist, and which are named alike."""
    wanted = [name for name in _names_in(query) if name.lower() not in _WORDS]
    try:
        known = await _names(api)
    except Refused:
        return "Check the metric name, the labels and the time."
    told = []
    for name in wanted:
        if name in known:
            told.append(
                f"The metric {name} exists: check its labels ({await _labels(api, name)}) and the time."
            )
        elif near := _like(name, known):
            told.append(f"There is no metric {name}; near to it: {', '.join(near)}.")
        else:
            told.append(f"There is no metric {name}, nor one named alike; look with prometheus_metadata.")
    return " ".join(told) or "Check the labels and the time."


async def metadata(api: PrometheusApi, pattern: str) -> str:
    """Names that match, with what is known of each."""
    names = await _names(api, _regex(pattern))
    if not names:
        near = _like(pattern, await _names(api))
        return f"no metric matches {pattern!r}" + (f"; near to it: {', '.join(near)}" if near else "")
    details: dict[str, Json] = await api.get("metadata", {"limit_per_metric": "1"})
    lines = [f"{len(names)} metrics match:"]
    for name in names[:MOST_NAMES]:
        known = (details.get(name) or [{}])[0]
        words = f"{name} ({known.get('type') or 'unknown type'}) {known.get('help') or ''}".rstrip()
        if len(names) <= MOST_LABELLED:
            words += f"\n  labels: {await _labels(api, name)}"
        lines.append(words)
    if len(names) > MOST_NAMES:
        lines.append(f"{len(names) - MOST_NAMES} more are not shown; use a narrower pattern.")
    return "\n".join(lines)


def _names_in(query: str) -> list[str]:
    bare = _NOISE.sub(" ", query)
    found = [
        name
        for match in _NAME.finditer(bare)
        if (name := match[0]) and bare[match.end() :].lstrip()[:1] != "("
    ]
    return list(dict.fromkeys(found))[:5]


async def _names(api: PrometheusApi, regex: str | None = None) -> list[str]:
    """Metric names that have data, in order; `regex` matches whole names."""
    parameters: dict[str, str | list[str]] = {}
    if regex is not None:
        quoted = regex.replace("\\", "\\\\").replace('"', '\\"')
        parameters["match[]"] = f'{{__name__=~"{quoted}"}}'
    return [str(name) for name in await api.get("label/__name__/values", parameters)]


def _regex(pattern: str) -> str:
    """A part of a name matches anywhere; anchors of the pattern itself are kept in spirit."""
    pattern = pattern.strip()
    start = "" if pattern.startswith("^") else ".*"
    end = "" if pattern.endswith("$") and not pattern.endswith("\\$") else ".*"
    inner = pattern.removeprefix("^")
    return f"{start}(?i:{inner[:-1] if not end else inner}){end}"


async def _labels(api: PrometheusApi, name: str) -> str:
    """The labels of a metric with a few values of each."""
    try:
        series: list[dict[str, str]] = await api.get("series", {"match[]": name, "limit": "500"})
    except Refused:
        return "unknown"
    values: dict[str, set[str]] = {}
    for labels in series[:500]:
        for key, value in labels.items():
            if key != "__name__":
                values.setdefault(key, set()).add(value)
    return ", ".join(f"{key}={_few(sorted(found))}" for key, found in sorted(values.items())) or "none"


def _few(values: list[str]) -> str:
    more = f"|… {len(values) - MOST_LABEL_VALUES} more" if len(values) > MOST_LABEL_VALUES else ""
    return "|".join(value[:60] for value in values[:MOST_LABEL_VALUES]) + more


def _like(name: str, known: list[str]) -> list[str]:
    if close := get_close_matches(name, known, n=5, cutoff=0.6):
        return close
    pieces = {piece for piece in re.split(r"[_:\W]+", name.lower()) if len(piece) > 3}
    scored = [(sum(piece in each.lower() for piece in pieces), each) for each in known]
    return [each for score, each in sorted(scored, key=lambda pair: (-pair[0], pair[1])) if score][:5]

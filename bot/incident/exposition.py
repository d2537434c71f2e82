"""What one service shows a real Prometheus: the text format, of the last scrape moment before now."""

from __future__ import annotations

from collections.abc import Sequence

from bot.incident.metrics import FAMILIES
from bot.incident.samples import Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PARTS = ("_bucket", "_sum", "_count")


def family_of(name: str) -> str:
    """The metric that a series belongs to: buckets, sum and count are one histogram."""
    for part in _PARTS:
        stem = name.removesuffix(part)
        if stem != name and FAMILIES.get(stem, ("",))[0] == "histogram":
            return stem
    return name


def exposition(series: Sequence[Series], job: str) -> str:
    """The page of one job; `job` and `instance` are given by who scrapes, `up` is its finding."""
    families: dict[str, list[str]] = {}
    for each in series:
        labels = dict(each.labels)
        name = labels.pop("__name__")
        if labels.pop("job") != job or name == "up" or each.ended != float("inf"):
            continue
        labels.pop("instance")
        pairs = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        families.setdefault(family_of(name), []).append(f"{name}{{{pairs}}} {float(each.values[-1])!r}")
    lines: list[str] = []
    for name, found in families.items():
        kind, words = FAMILIES[name]
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *found]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

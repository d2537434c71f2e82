"""Numbers for Prometheus in its text format, version 0.0.4.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number with its labels. Metrics of one name stand together, with the same help and kind."""

    name: str
    help: str
    value: float
    kind: Literal["gauge", "counter"] = "gauge"
    labels: Mapping[str, str] = field(default_factory=dict)


def render(metrics: Iterable[Metric]) -> str:
    """The metrics as text, each name with its help and kind once."""
    lines: list[str] = []
    described: set[str] = set()
    for metric in metrics:
        if metric.name not in described:
            described.add(metric.name)
            lines += [f"# HELP {metric.name} {_help(metric.help)}", f"# TYPE {metric.name} {metric.kind}"]
        labels = ",".join(f'{name}="{_label(value)}"' for name, value in metric.labels.items())
        lines.append(f"{metric.name}{{{labels}}} {_number(metric.value)}" if labels else _plain(metric))
    return "".join(f"{line}\n" for line in lines)


def _plain(metric: Metric) -> str:
    return f"{metric.name} {_number(metric.value)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _label(text: str) -> str:
    return _help(text).replace('"', r"\"")

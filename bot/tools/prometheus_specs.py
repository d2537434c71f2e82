"""The Prometheus tools as the model sees them. All of them only read."""

from __future__ import annotations

from bot.tools.specs import reader
from core.history import Json
from core.tools import ToolSpec

QUERY = "prometheus_query"
RANGE = "prometheus_range"
ALERTS = "prometheus_alerts"
TARGETS = "prometheus_targets"
METADATA = "prometheus_metadata"

_TIME: dict[str, Json] = {
    "type": ["string", "number"],
    "description": 'RFC 3339, epoch seconds, "now", or relative like "-1h".',
}


def specs(timeout_s: float) -> tuple[ToolSpec, ...]:
    """The five tools, in a stable order."""
    promql: Json = {"type": "string", "minLength": 1, "description": "A PromQL expression."}
    return (
        reader(
            QUERY,
            timeout_s,
            "Evaluate a PromQL expression at one moment. For what happened over time use prometheus_range.",
            ["query"],
            query=promql,
            time={**_TIME, "description": f"When; default now. {_TIME['description']}"},
        ),
        reader(
            RANGE,
            timeout_s,
            "Evaluate a PromQL expression over time. Returns statistics of each series (first, last, "
            "min and max with times, mean, p95, trend, biggest jump, gaps), at most 20 series; people "
            "in the thread see a chart. Aggregate (sum by, topk) when there are many series.",
            ["query", "start"],
            query=promql,
            start={**_TIME, "description": f"Begin of the range. {_TIME['description']}"},
            end={**_TIME, "description": f"End of the range; default now. {_TIME['description']}"},
            step={
                "type": ["string", "number"],
                "description": 'Distance of the points like "30s" or "5m"; default fits the range.',
            },
            unit={
                "type": "string",
                "maxLength": 30,
                "description": 'For the chart: "seconds", "req/s", "bytes"…',
            },
        ),
        reader(
            ALERTS,
            timeout_s,
            "Alerts that are pending or firing, with their labels, since when, and their value.",
            [],
            match={
                "type": "string",
                "description": "Only alerts that hold this text in a label or annotation.",
            },
        ),
        reader(
            TARGETS,
            timeout_s,
            "What Prometheus scrapes: which targets are down and why, how many are up, by job.",
            [],
            job={"type": "string", "description": "Only this job."},
        ),
        reader(
            METADATA,
            timeout_s,
            "Find metrics: names that match a pattern, with type, help and, for few matches, their labels.",
            ["pattern"],
            pattern={"type": "string", "description": "A part of the name, or a regular expression (RE2)."},
        ),
    )

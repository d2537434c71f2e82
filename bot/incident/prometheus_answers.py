"""What Prometheus' API answers, as JSON: values, alerts, rules and targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from bot.incident.alerts import RULES, Alert, active
from bot.incident.columns import PORT
from bot.incident.metrics import JOBS
from bot.incident.noise import Floats
from bot.incident.promql.values import Text, Value, Window
from bot.incident.samples import Series
from bot.incident.story import TICK_S, Story

Json = object


def number(value: float) -> str:
    """As Prometheus writes numbers."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e21 else repr(float(value))


def iso(at: float) -> str:
    """RFC 3339, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def instant(value: Value, at: float) -> Json:
    """At one moment."""
    if isinstance(value, Text):
        return {"resultType": "string", "result": [at, value.value]}
    if not isinstance(value, list):
        return {"resultType": "scalar", "result": [at, number(float(value[0]))]}
    found = [
        {"metric": dict(row.labels), "value": [at, number(float(row.values[0]))]}
        for row in value
        if row.there[0]
    ]
    return {"resultType": "vector", "result": found}


def matrix(value: Value, steps: Floats) -> Json:
    """At every step; a series is told only where it exists."""
    if isinstance(value, Text):
        return {"resultType": "matrix", "result": []}
    if not isinstance(value, list):
        values = [[at, number(each)] for at, each in zip(steps.tolist(), value.tolist(), strict=True)]
        return {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}
    found = []
    for row in sorted(value, key=lambda each: each.labels):
        there = row.there
        values = [
            [at, number(each)]
            for at, each in zip(steps[there].tolist(), row.values[there].tolist(), strict=True)
        ]
        if values:
            found.append({"metric": dict(row.labels), "values": values})
    return {"resultType": "matrix", "result": found}


def windows(found: Sequence[Window]) -> Json:
    """The scrapes themselves: an instant query for a range."""
    result = []
    for each in found:
        part = slice(int(each.first[0]), int(each.last[0]) + 1)
        pairs = zip(each.times[part].tolist(), each.values[part].tolist(), strict=True)
        result.append({"metric": dict(each.labels), "values": [[at, number(value)] for at, value in pairs]})
    return {"resultType": "matrix", "result": result}


def alerts(series: Sequence[Series], now: float) -> Json:
    """What is pending or firing."""
    return {"alerts": [_alert(each) for each in active(series, now)]}


def _alert(alert: Alert) -> Json:
    return {
        "labels": alert.labels,
        "annotations": {"summary": alert.rule.summary},
        "state": "firing" if alert.firing else "pending",
        "activeAt": iso(alert.since),
        "value": f"{alert.value:.6e}",
    }


def rules(series: Sequence[Series], now: float) -> Json:
    """The rules, with what is active of each."""
    found = list(active(series, now))
    told = []
    for rule in RULES:
        mine = [each for each in found if each.rule is rule]
        state = "firing" if any(each.firing for each in mine) else "pending" if mine else "inactive"
        told.append(
            {
                "name": rule.name,
                "query": rule.query,
                "duration": rule.for_s,
                "labels": {"severity": rule.severity},
                "annotations": {"summary": rule.summary},
                "alerts": [_alert(each) for each in mine],
                "health": "ok",
                "state": state,
                "type": "alerting",
            }
        )
    return {"groups": [{"name": "shop", "file": "shop.yml", "interval": 30, "rules": told}]}


def targets(story: Story, now: float) -> Json:
    """Who is scraped; every service answers its scrapes in every story."""
    last = story.origin + story.tick(now) * TICK_S
    found = [
        {
            "discoveredLabels": {"__address__": f"{job}:{PORT}", "job": job},
            "labels": {"instance": f"{job}:{PORT}", "job": job},
            "scrapePool": job,
            "scrapeUrl": f"http://{job}:{PORT}/metrics",
            "globalUrl": f"http://{job}:{PORT}/metrics",
            "lastError": "",
            "lastScrape": iso(last),
            "lastScrapeDuration": 0.004,
            "health": "up",
            "scrapeInterval": "15s",
            "scrapeTimeout": "10s",
        }
        for job in JOBS
    ]
    return {"activeTargets": found, "droppedTargets": []}

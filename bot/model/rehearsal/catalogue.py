"""All checks by key: what is asked of metrics, logs, deploys and runbooks, in the words of the usual tools.

Metrics are asked over time where it matters what they were before; the rest at one moment, which draws no
chart for people to scroll past.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.model.rehearsal.checks import Check, Kind, Way

HOURS = "-8h"  # the most that is shown in steps of two minutes; older faults show no beginning


def _per(total: str, count: str) -> str:
    return f"sum by (service) (rate({total}[2m])) / sum by (service) (rate({count}[2m]))"


_REQUESTS = "sum by (service) (rate(http_request_duration_seconds_count[2m]))"
_PER_REQUEST = "sum by (service, dependency) (rate({}[2m])) / on (service) group_left " + _REQUESTS
_POOLS = "max by (service) (db_pool_connections_in_use / db_pool_connections_max)"
_PRESSURE = "max by (service, node) (cpu_pressure_ratio)"

# Key, topic, unit, PromQL.
OVER_TIME = (
    (
        "latency",
        "latency",
        "seconds",
        "histogram_quantile(0.99, sum by (service, le) (rate(http_request_duration_seconds_bucket[2m])))",
    ),
    (
        "errors",
        "errors",
        "share",
        'sum by (service) (rate(http_requests_total{status=~"5.."}[2m]))'
        " / sum by (service) (rate(http_requests_total[2m]))",
    ),
    (
        "mean",
        "the mean time of a request",
        "seconds",
        _per("http_request_duration_seconds_sum", "http_request_duration_seconds_count"),
    ),
    (
        "spent",
        "where requests spend their time",
        "seconds",
        _PER_REQUEST.format("dependency_request_duration_seconds_sum"),
    ),
    ("asked", "how often they ask others", "calls", _PER_REQUEST.format("dependency_requests_total")),
    ("pools_before", "connection pools over time", "share", _POOLS),
    (
        "held",
        "sessions that hold a transaction open",
        "sessions",
        'sum by (client) (db_sessions{state="idle in transaction"})',
    ),
    (
        "queries",
        "the time of a query",
        "seconds",
        _per("db_query_duration_seconds_sum", "db_query_duration_seconds_count"),
    ),
    ("pressure_before", "pressure on processors over time", "share", _PRESSURE),
    (
        "workloads",
        "who uses the machines' processors",
        "cores",
        "sum by (node, workload) (workload_cpu_cores_used)",
    ),
    (
        "cores",
        "the services' own use of processors",
        "cores",
        "sum by (service) (rate(process_cpu_seconds_total[2m]))",
    ),
    ("traffic", "traffic", "per second", "sum by (service) (rate(http_requests_total[2m]))"),
)
# Key, topic, PromQL.
AT_ONE_MOMENT = (
    (
        "failing",
        "which calls between services fail",
        'sum by (service, dependency) (rate(dependency_requests_total{outcome="error"}[2m]))'
        " / sum by (service, dependency) (rate(dependency_requests_total[2m]))",
    ),
    ("kinds", "kinds of errors", "sum by (service, kind) (rate(errors_total[2m]))"),
    ("pools", "connection pools", _POOLS),
    ("waiting", "who waits for a connection", "sum by (service) (db_pool_waiting)"),
    ("pressure", "pressure on processors", _PRESSURE),
)


def _over_time(key: str, topic: str, unit: str, promql: str) -> Check:
    """Where only single moments can be asked, a few of them by a subquery."""
    several = Way(Kind.QUERY, {"query": f"({promql})[95m:5m]"})
    return Check(key, topic, (Way(Kind.RANGE, {"query": promql, "start": HOURS, "unit": unit}), several))


def _at_one_moment(key: str, topic: str, promql: str) -> Check:
    return Check(
        key,
        topic,
        (Way(Kind.QUERY, {"query": promql}), Way(Kind.RANGE, {"query": promql, "start": HOURS})),
    )


def _other() -> tuple[Check, ...]:
    complaints = '{level=~"warn|error"}'
    ends = "tls_certificate_not_after_timestamp_seconds - time()"
    return (
        Check(
            "alerts",
            "alerts",
            (Way(Kind.ALERTS, {}), Way(Kind.QUERY, {"query": 'ALERTS{alertstate="firing"}'})),
        ),
        Check(
            "deploys",
            "deploys",
            (
                Way(Kind.DEPLOYS, {"start": "-24h"}),
                Way(Kind.QUERY, {"query": "time() - deploy_timestamp_seconds"}),
            ),
        ),
        Check(
            "complaints",
            "warnings in the logs",
            (Way(Kind.LOGS, {"query": complaints, "start": "-1h"}),),
        ),
        Check(
            "certificates",
            "certificates",
            (
                Way(Kind.QUERY, {"query": ends}),
                Way(Kind.LOGS, {"query": f'{complaints} |= "certificate"', "start": "-1h"}),
            ),
        ),
    )


FIXED: Mapping[str, Check] = {
    check.key: check
    for check in (
        *(_over_time(*row) for row in OVER_TIME),
        *(_at_one_moment(*row) for row in AT_ONE_MOMENT),
        *_other(),
    )
}

_ABOUT: Mapping[str, tuple[str, tuple[Way, ...]]] = {
    "logs": ("the logs of {0}", (Way(Kind.LOGS, {"query": '{{service="{0}"}}', "start": "-30m"}),)),
    "deploy": ("what deploy {0} changed", (Way(Kind.DEPLOY, {"id": "{0}"}),)),
    "runbooks": ("runbooks on {0}", (Way(Kind.FIND_RUNBOOK, {"query": "{0}"}),)),
    "runbook": ("the runbook {0}", (Way(Kind.READ_RUNBOOK, {"id": "{0}"}),)),
    "probe": ("{0} from here", (Way(Kind.PROBE, {"url": "{0}"}),)),
}


def about(family: str, subject: str) -> Check:
    """A check of one thing: a service's logs, a deploy, a runbook, an address."""
    topic, ways = _ABOUT[family]
    slug = re.sub(r"[^a-z0-9]+", "_", subject.lower()).strip("_")[:30].strip("_")
    filled = tuple(
        Way(way.kind, {role: value.format(subject) for role, value in way.gives.items()}) for way in ways
    )
    return Check(f"{family}__{slug}", topic.format(subject), filled, subject)

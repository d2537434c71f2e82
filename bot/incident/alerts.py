"""The alert rules of the shop, evaluated when asked for: an alert is active since its condition holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.parser import parse
from bot.incident.samples import Series

LOOK_BACK_S = 6 * 3_600.0
EVERY_S = 30.0


@dataclass(frozen=True)
class Rule:
    """One rule; it fires when its condition has held for so many seconds."""

    name: str
    query: str
    for_s: float
    severity: str
    summary: str


def _failing(service: str) -> str:
    requests = f'http_requests_total{{service="{service}"'
    return (
        f'sum by (service) (rate({requests},status=~"5.."}}[5m])) '
        f"/ sum by (service) (rate({requests}}}[5m])) > 0.05"
    )


RULES = (
    Rule(
        "CheckoutLatencyHigh",
        "histogram_quantile(0.99, sum by (service, le) "
        '(rate(http_request_duration_seconds_bucket{service="checkout"}[5m]))) > 2',
        600.0,
        "page",
        "checkout p99 above 2 s",
    ),
    Rule("CheckoutErrorsHigh", _failing("checkout"), 300.0, "page", "checkout errors above 5 %"),
    Rule("GatewayErrorsHigh", _failing("gateway"), 300.0, "page", "gateway errors above 5 %"),
    Rule("TargetDown", "up == 0", 60.0, "ticket", "Prometheus cannot scrape a service"),
)


@dataclass(frozen=True)
class Alert:
    """A condition that holds now."""

    rule: Rule
    labels: dict[str, str]
    since: float
    firing: bool
    value: float


def active(series: Sequence[Series], now: float) -> Iterator[Alert]:
    """All of them, pending or firing."""
    for rule in RULES:
        end = now // EVERY_S * EVERY_S
        found = Evaluator.between(series, end - LOOK_BACK_S, end, EVERY_S)
        rows = found.value(parse(rule.query))
        for row in rows if isinstance(rows, list) else ():
            if not row.there[-1]:
                continue
            held = int(row.there[::-1].argmin()) or len(row.there)
            since = float(found.steps[-held])
            labels = {key: value for key, value in row.labels if key != "__name__"}
            labels |= {"alertname": rule.name, "severity": rule.severity}
            yield Alert(rule, labels, since, now - since >= rule.for_s, float(row.values[-1]))

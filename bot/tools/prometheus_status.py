"""Alerts and scrape targets of Prometheus in words: what is wrong first, the rest as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bot.tools.clean import one_line
from bot.tools.prometheus_stats import number
from core.history import Json

MOST_ALERTS = 50
MOST_DOWN = 50


def alerts(found: Sequence[Json], match: str) -> str:
    """Firing alerts before pending ones, the oldest first."""
    wanted = [alert for alert in found if match.lower() in _words(alert).lower()]
    if not wanted:
        if match and found:
            return f"none of the {len(found)} active alerts holds {match!r}"
        return "no alert is pending or firing"
    wanted.sort(key=lambda alert: (alert["state"] != "firing", alert.get("activeAt", "")))
    states = Counter(str(alert["state"]) for alert in wanted)
    lines = [", ".join(f"{count} {state}" for state, count in sorted(states.items())) + ":"]
    lines += [_alert(alert) for alert in wanted[:MOST_ALERTS]]
    if len(wanted) > MOST_ALERTS:
        lines.append(f"{len(wanted) - MOST_ALERTS} more are not shown; use `match`.")
    return "\n".join(lines)


def targets(found: Sequence[Json], job: str) -> str:
    """Counts by job, then every target that is down, with the reason."""
    wanted = [target for target in found if not job or target["labels"].get("job") == job]
    if not wanted:
        jobs = sorted({str(target["labels"].get("job")) for target in found})
        return f"no target of job {job!r}; jobs: {', '.join(jobs)}" if job else "Prometheus scrapes nothing"
    counts = Counter((str(target["labels"].get("job")), str(target["health"])) for target in wanted)
    lines = [f"job {name}: {count} {health}" for (name, health), count in sorted(counts.items())]
    down = [target for target in wanted if target["health"] != "up"]
    lines += [_target(target) for target in down[:MOST_DOWN]]
    if len(down) > MOST_DOWN:
        lines.append(f"{len(down) - MOST_DOWN} more that are not up are not shown; use `job`.")
    return "\n".join(lines)


def _alert(alert: Json) -> str:
    labels = {key: value for key, value in alert["labels"].items() if key != "alertname"}
    pairs = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    notes = alert.get("annotations", {})
    note = notes.get("summary") or notes.get("description") or ""
    name = f"{alert['labels'].get('alertname', '?')}{{{pairs}}}"
    return (
        f"{alert['state']} {name} since {alert.get('activeAt', '?')}, value {_value(alert.get('value'))}"
        f"{': ' + one_line(note) if note else ''}"
    )


def _value(value: object) -> str:
    try:
        return number(float(str(value)))
    except ValueError:
        return str(value)


def _target(target: Json) -> str:
    error = one_line(str(target.get("lastError") or ""))
    return (
        f"{target['health']}: job {target['labels'].get('job')}, {target['labels'].get('instance')}, "
        f"last scrape {target.get('lastScrape', '?')}{': ' + error if error else ''}"
    )


def _words(alert: Json) -> str:
    return " ".join(
        str(value) for part in ("labels", "annotations") for value in alert.get(part, {}).values()
    )

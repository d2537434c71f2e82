"""Each alarm rings for its own trouble, in time and no earlier, and says what to do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.measures import Fleet, Measures
from core.history import Json
from tests.servers.prometheus import promtool

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
RULES: dict[str, dict[str, Json]] = {
    rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
}
ONE = {"job": "watchkeeper", "instance": "a:8080"}
JOB = {"job": "watchkeeper"}


@dataclass(frozen=True)
class Trouble:
    """Series by the minute, and the alarm that rings at that minute and not the one before it."""

    alert: str
    series: dict[str, str]
    minute: int
    labels: dict[str, str]
    summary: str


def of(name: str, labels: dict[str, str] | None = None) -> str:
    """A series of one process."""
    pairs = [f'{label}="{value}"' for label, value in {**ONE, **(labels or {})}.items()]
    return f"{name}{{{','.join(pairs)}}}"


LAG = "watchkeeper_loop_lag_seconds_bucket"

TROUBLES = (
    Trouble(
        "WatchkeeperDown",
        {of("watchkeeper_ready"): "1x4 0x30"},
        6,
        {},
        "No Watchkeeper process says that it is ready, or none is scraped; /readyz says why.",
    ),
    Trouble(
        "WatchkeeperNotReady",
        {of("watchkeeper_ready"): "0x30", of("watchkeeper_ready", {"instance": "b:8080"}): "1x30"},
        5,
        ONE,
        "a:8080 has not been ready for 5 minutes; its /readyz says why.",
    ),
    Trouble(
        "WatchkeeperDatabaseAway",
        {of("watchkeeper_database_up"): "0x30"},
        2,
        ONE,
        "The database has not answered a:8080 in time for 2 minutes.",
    ),
    Trouble(
        "WatchkeeperTurnNotSettled",
        {of("watchkeeper_oldest_unsettled_turn_seconds"): "3600+60x30"},
        7,
        JOB,
        "A turn has run for 1h 7m 0s, past its limit, and nobody settles it.",
    ),
    Trouble(
        "WatchkeeperOutboxOld",
        {of("watchkeeper_outbox_age_seconds"): "0+60x30"},
        7,
        JOB,
        "An answer or note has waited 7m 0s for the platform to take it.",
    ),
    Trouble(
        "WatchkeeperCardNotReleased",
        {of("watchkeeper_unreleased_cards"): "0x4 2x30"},
        10,
        JOB,
        "2 cards have shown work as live for 5 minutes though it has ended.",
    ),
    Trouble(
        "WatchkeeperLeaseLost",
        {of("watchkeeper_lease_losses_total"): "0x4 1x30"},
        5,
        ONE,
        "a:8080 lost turns to another process while it still worked on them.",
    ),
    Trouble(
        "WatchkeeperLoopHeldUp",
        {
            of(LAG, {"le": "0.25"}): "0x30",
            of(LAG, {"le": "0.5"}): "0+60x30",
            of(LAG, {"le": "+Inf"}): "0+60x30",
        },
        6,
        ONE,
        "The event loop of a:8080 is held up for 497.5ms (p99).",
    ),
    Trouble(
        "WatchkeeperGaveUp",
        {of("watchkeeper_given_up_total", {"kind": "answer"}): "0x4 1x30"},
        5,
        {**JOB, "kind": "answer"},
        "The platform refused something for good, so it was given up: answer.",
    ),
    Trouble(
        "WatchkeeperRateLimited",
        {of("watchkeeper_slack_calls_total", {"outcome": "rate_limited"}): "0+60x30"},
        6,
        JOB,
        "Slack answered 360 calls with 429 within 10 minutes.",
    ),
)

WELL = {
    of("watchkeeper_ready"): "1x60",
    of("watchkeeper_database_up"): "1x60",
    of("watchkeeper_oldest_unsettled_turn_seconds"): "3600x60",
    of("watchkeeper_outbox_age_seconds"): "0 200 0x58",
    of("watchkeeper_unreleased_cards"): "0 3 3 0x57",
    of("watchkeeper_lease_losses_total"): "4x60",
    of("watchkeeper_given_up_total", {"kind": "receipt"}): "0+1x60",
    of("watchkeeper_given_up_total", {"kind": "answer"}): "7x60",
    of("watchkeeper_slack_calls_total", {"outcome": "rate_limited"}): "0+1x60",
    of("watchkeeper_slack_calls_total", {"outcome": "ok"}): "0+600x60",
    of(LAG, {"le": "0.05"}): "0+240x60",
    of(LAG, {"le": "+Inf"}): "0+240x60",
}


def must_hold(folder: Path, series: dict[str, str], expected: list[dict[str, Json]]) -> None:
    """The alarms ring over these series as expected, says the real tool."""
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": expected,
    }
    file = folder / "rules.yaml"
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}))
    promtool("test", "rules", file)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.alert)
def test_an_alarm_rings_for_its_trouble_in_time_and_no_earlier(tmp_path: Path, trouble: Trouble) -> None:
    rule = RULES[trouble.alert]
    rings: dict[str, Any] = {
        "exp_labels": {**rule["labels"], **trouble.labels},
        "exp_annotations": {"summary": trouble.summary, "runbook": rule["annotations"]["runbook"]},
    }
    before = {"eval_time": f"{trouble.minute - 1}m", "alertname": trouble.alert, "exp_alerts": []}
    then = {"eval_time": f"{trouble.minute}m", "alertname": trouble.alert, "exp_alerts": [rings]}
    must_hold(tmp_path, trouble.series, [before, then])


@pytest.mark.slow
def test_no_alarm_rings_while_all_is_well(tmp_path: Path) -> None:
    silent = [
        {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []}
        for alert in RULES
        for minute in range(1, 60)
    ]
    must_hold(tmp_path, WELL, silent)


@pytest.mark.slow
def test_an_alarm_rings_when_nobody_is_there_to_be_scraped(tmp_path: Path) -> None:
    rule = RULES["WatchkeeperDown"]
    rings = {"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]}
    must_hold(tmp_path, {}, [{"eval_time": "5m", "alertname": "WatchkeeperDown", "exp_alerts": [rings]}])


def test_every_alarm_has_its_trouble_here() -> None:
    assert [trouble.alert for trouble in TROUBLES] == list(RULES)


@pytest.mark.parametrize("alert", RULES)
def test_an_alarm_says_what_is_wrong_how_bad_and_where_to_read_on(alert: str) -> None:
    rule = RULES[alert]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert str(rule["annotations"]["summary"]).endswith(".")
    assert re.fullmatch(r"docs/operations\.md#[a-z-]+", str(rule["annotations"]["runbook"]))


@pytest.mark.parametrize("alert", RULES)
def test_an_alarm_asks_for_numbers_that_exist(alert: str) -> None:
    measures = Measures()
    measures.expect_slack_calls(["chat.update"])
    measures.fleet_is(Fleet(0.0, 0.0, 0))
    ours = {sample.name for family in measures.registry.collect() for sample in family.samples}
    assert set(re.findall(r"watchkeeper_\w+", str(RULES[alert]["expr"]))) <= ours

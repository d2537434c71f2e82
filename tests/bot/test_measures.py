"""What is measured: every series is there from the start, and there are never more of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from bot.measures import HURRYING, SLACK_OUTCOMES, Fleet, Measures
from core.reasons import Reason
from core.signals import Signal


def series(registry: CollectorRegistry) -> dict[str, float]:
    """Every series of ours with its value, as Prometheus writes it."""
    return {
        name + "".join(f"{{{label}={value}}}" for label, value in sorted(labels.items())): sample.value
        for family in registry.collect()
        for sample in family.samples
        for name, labels in [(sample.name, sample.labels)]
        if name.startswith("watchkeeper_")
    }


@pytest.mark.parametrize(
    "happens, counted",
    [
        (lambda m: m.settled(Reason.STEERED), "watchkeeper_turns_settled_total{reason=steered}"),
        (
            lambda m: m.reached_safe_point(Signal.DRAIN, 2.0),
            "watchkeeper_safe_point_wait_seconds_count{signal=drain}",
        ),
        (lambda m: m.cut(Reason.STOPPED, 0.2), "watchkeeper_steer_cut_seconds_count{signal=stop}"),
        (lambda m: m.cut(Reason.STEERED, 0.2), "watchkeeper_steer_cut_seconds_count{signal=steer}"),
        (lambda m: m.steer_read(0.2), "watchkeeper_steer_read_seconds_count"),
        (lambda m: m.lease_lost(), "watchkeeper_lease_losses_total"),
        (lambda m: m.running(1), "watchkeeper_turns_running"),
        (lambda m: m.card_released(0.2), "watchkeeper_card_lag_seconds_count"),
        (lambda m: m.given_up("answer"), "watchkeeper_given_up_total{kind=answer}"),
        (lambda m: m.given_up("partial"), "watchkeeper_given_up_total{kind=note}"),
        (lambda m: m.database_retried(), "watchkeeper_database_retries_total"),
        (lambda m: m.ready(True), "watchkeeper_ready"),
        (
            lambda m: m.slack_called("chat.update", "rate_limited"),
            "watchkeeper_slack_calls_total{method=chat.update}{outcome=rate_limited}",
        ),
    ],
)
def test_what_happens_is_counted_in_its_own_series(happens: Callable[[Measures], None], counted: str) -> None:
    measures = Measures()
    measures.expect_slack_calls(["chat.update"])
    before = series(measures.registry)
    assert before[counted] == 0
    happens(measures)
    after = series(measures.registry)
    assert after[counted] == 1
    assert set(after) == set(before), "a series that was not there from the start"


def test_every_series_is_there_with_zero_before_anything_happens() -> None:
    measures = Measures()
    measures.expect_slack_calls(["chat.update"])
    found = series(measures.registry)
    assert set(found.values()) == {0}
    assert {f"watchkeeper_turns_settled_total{{reason={reason}}}" for reason in Reason} <= set(found)
    assert {f"watchkeeper_safe_point_wait_seconds_count{{signal={one}}}" for one in HURRYING} <= set(found)
    assert {
        f"watchkeeper_slack_calls_total{{method=chat.update}}{{outcome={one}}}" for one in SLACK_OUTCOMES
    } <= set(found)


def test_what_nobody_asked_for_is_no_latency() -> None:
    measures = Measures()
    before = series(measures.registry)
    measures.cut(Reason.COMPLETED, 1.0)
    measures.reached_safe_point(Signal.PARKED, 1.0)
    assert series(measures.registry) == before


def test_services_in_one_process_count_apart() -> None:
    one, other = Measures(), Measures()
    one.lease_lost()
    assert series(other.registry)["watchkeeper_lease_losses_total"] == 0


def test_gauges_of_the_fleet_are_absent_while_the_database_does_not_answer() -> None:
    measures = Measures()
    measures.fleet_is(Fleet(12.0, 34.0, 5))
    found = series(measures.registry)
    assert found["watchkeeper_database_up"] == 1
    assert found["watchkeeper_outbox_age_seconds"] == 12
    assert found["watchkeeper_oldest_unsettled_turn_seconds"] == 34
    assert found["watchkeeper_unreleased_cards"] == 5
    measures.fleet_is(None)
    gone = set(found) - set(series(measures.registry))
    assert series(measures.registry)["watchkeeper_database_up"] == 0
    assert gone == {
        "watchkeeper_outbox_age_seconds",
        "watchkeeper_oldest_unsettled_turn_seconds",
        "watchkeeper_unreleased_cards",
    }


def test_a_number_of_seconds_is_named_and_described_so() -> None:
    measures = Measures()
    measures.fleet_is(Fleet(0.0, 0.0, 0))
    for family in measures.registry.collect():
        if family.name.startswith("watchkeeper_"):
            assert family.name.endswith("_seconds") == ("econds" in family.documentation), family.name


async def test_a_loop_that_is_held_up_is_measured() -> None:
    measures = Measures()
    watching = asyncio.create_task(measures.watch_loop())
    await asyncio.sleep(0.05)
    time.sleep(0.6)
    while series(measures.registry)["watchkeeper_loop_lag_seconds_count"] == 0:
        await asyncio.sleep(0.01)
    watching.cancel()
    assert series(measures.registry)["watchkeeper_loop_lag_seconds_sum"] > 0.3

"""The real Prometheus scrapes a service at work, and every query of dashboard and alarms is asked of it."""

from __future__ import annotations

import asyncio
import json
import math
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.history import Json
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.prometheus import Prometheus, promtool
from tests.stories.room import Room, eventually
from tests.stories.telling import ask, held, reply_to, story, until_reached

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.xdist_group("prometheus")]

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Json] = json.loads((DEPLOY / "grafana" / "watchkeeper.json").read_text())
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
RULES: list[dict[str, Json]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]

VARIABLES = {"$job": ".+", "$window": "15m"}

HAPPENED = {
    "Readiness by process",
    "Turns by reason",
    "Steer latency",
    "Safe-point wait",
    "Card lag",
    "Loop lag",
    "Memory",
    "CPU",
}
"""Panels that must show more than zero and "not a number" after an analysis with a steer."""


def queries() -> list[tuple[str, str]]:
    """The panels of the dashboard with each of their queries, as Grafana would ask them."""
    found = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            assert "$" not in query, f"an unknown variable: {query}"
            found.append((panel["title"], query))
    return found


@asynccontextmanager
async def scraped(room: Room, folder: Path) -> AsyncIterator[Prometheus]:
    """A Prometheus that has scraped the room's service once."""
    prometheus = Prometheus(folder)
    target = {"targets": [f"127.0.0.1:{room.port}"]}
    child = prometheus.start([{"job_name": "watchkeeper", "static_configs": [target]}], [ALERTS])
    try:
        await eventually(lambda: has_samples(prometheus, 1), timeout=60)
        yield prometheus
    finally:
        child.terminate()
        await asyncio.to_thread(child.wait, 20)


async def has_samples(prometheus: Prometheus, wanted: int) -> bool:
    found = await value_of(prometheus, "count_over_time(watchkeeper_ready[1h])")
    return any(count >= wanted for count in found)


async def value_of(prometheus: Prometheus, query: str) -> list[float]:
    """The values of a query now, one for each series."""
    answer: Any = await asyncio.to_thread(prometheus.ask, "query", query=query)
    return [float(each["value"][1]) for each in answer["result"]]


async def steered_analysis(room: Room) -> None:
    """An analysis whose open call is hurried by a steer, up to its answer."""
    room.model.script(reply(held(room, "w")), reply(text("the deploy removed an index")))
    thread = await ask(room)
    await until_reached(room, "w")
    await reply_to(room, thread, "look at the 14:05 deploy")
    await room.until_settled("steered", "completed")


async def test_every_query_of_the_dashboard_and_of_the_alarms_is_answered_by_the_real_prometheus(
    tmp_path: Path,
) -> None:
    (tmp_path / "prometheus").mkdir()
    async with story(tmp_path) as room, scraped(room, tmp_path / "prometheus") as prometheus:
        await steered_analysis(room)
        before: Any = await value_of(prometheus, "count_over_time(watchkeeper_ready[1h])")
        await eventually(lambda: has_samples(prometheus, int(before[0]) + 3), timeout=30)

        shown = [(title, query, await value_of(prometheus, query)) for title, query in queries()]
        assert [(title, query) for title, query, values in shown if not values] == []
        says_something = {
            title for title, _, values in shown if any(value > 0 and math.isfinite(value) for value in values)
        }
        assert HAPPENED - says_something == set()

        ringing = {rule["alert"]: await value_of(prometheus, rule["expr"]) for rule in RULES}
        assert ringing == {rule["alert"]: [] for rule in RULES}, "a healthy service sets off an alarm"
        loaded: Any = await asyncio.to_thread(prometheus.ask, "rules")
        assert {rule["name"]: rule["health"] for rule in loaded["groups"][0]["rules"]} == {
            rule["alert"]: "ok" for rule in RULES
        }
        jobs: Any = await asyncio.to_thread(
            prometheus.ask, "label/job/values", **{"match[]": "watchkeeper_ready"}
        )
        assert jobs == ["watchkeeper"], "the dashboard's choice of jobs"


async def test_what_prometheus_shows_of_a_steered_analysis_is_what_happened(tmp_path: Path) -> None:
    (tmp_path / "prometheus").mkdir()
    async with story(tmp_path) as room, scraped(room, tmp_path / "prometheus") as prometheus:
        await steered_analysis(room)
        wanted = {
            'watchkeeper_turns_settled_total{reason="steered"}': 1,
            'watchkeeper_turns_settled_total{reason="completed"}': 1,
            'watchkeeper_turns_settled_total{reason="failed"}': 0,
            'watchkeeper_steer_cut_seconds_count{signal="steer"}': 1,
            "watchkeeper_steer_read_seconds_count": 1,
            'watchkeeper_safe_point_wait_seconds_count{signal="steer"}': 1,
            "watchkeeper_card_lag_seconds_count": 2,
            "watchkeeper_lease_losses_total": 0,
            "watchkeeper_outbox_age_seconds": 0,
            "watchkeeper_oldest_unsettled_turn_seconds": 0,
            "watchkeeper_unreleased_cards": 0,
            "watchkeeper_database_up": 1,
            "watchkeeper_ready": 1,
            "watchkeeper_turns_running": 0,
            'sum(watchkeeper_slack_calls_total{outcome!="ok"})': 0,
        }
        found: dict[str, list[float]] = {}

        async def as_wanted() -> bool:
            found.update({query: await value_of(prometheus, query) for query in wanted})
            return found == {query: [value] for query, value in wanted.items()}

        try:
            await eventually(as_wanted, timeout=20)
        except AssertionError:
            assert found == {query: [value] for query, value in wanted.items()}


async def test_promtool_finds_no_fault_with_our_numbers(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        await steered_analysis(room)
        with await asyncio.to_thread(
            urllib.request.urlopen, f"http://127.0.0.1:{room.port}/metrics"
        ) as answer:
            numbers = answer.read().decode()
        assert 'watchkeeper_turns_settled_total{reason="steered"} 1.0' in numbers.splitlines()
        assert promtool("check", "metrics", given=numbers) == ""


def test_promtool_finds_no_fault_with_the_alarms() -> None:
    assert f"SUCCESS: {len(RULES)} rules found" in promtool("check", "rules", ALERTS)

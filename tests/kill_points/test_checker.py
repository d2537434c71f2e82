"""A run is worth something only if it can fail: each planted bug is caught, at the point where it bites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kill_points.drive import drive
from tests.kill_points.plants import PLANTS
from tests.kill_points.points import Fault, Kind, Life, Point, Strike
from tests.kill_points.world import PostgresStore, Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SOON_S = 4.0  # without anything happening


def strike(kind: Kind, life: Life, name: str, fault: Fault, number: int = 1) -> tuple[Strike, ...]:
    return (Strike(Point(life, kind, name, number), fault),)


BEFORE_STORED = strike(Kind.COMMIT, Life.FIRST, "inbox.ingest: COMMIT", Fault.KILL_BEFORE)
WHILE_CALLS_RUN = strike(Kind.COMMIT, Life.FIRST, "decisions.decide: COMMIT", Fault.KILL_AFTER, 2)
AFTER_A_SIDE_EFFECT = strike(Kind.CALL, Life.FIRST, "tool restart", Fault.KILL_AFTER)
AFTER_THE_ANSWER = strike(Kind.CALL, Life.RESUMED, "slack chat.postMessage", Fault.KILL_AFTER)
IN_A_COMMIT = strike(Kind.STATEMENT, Life.FIRST, "steps.commit: insert calls", Fault.KILL_BEFORE)

BEFORE_A_REQUEST = strike(Kind.CALL, Life.FIRST, "model messages", Fault.FREEZE, 2)

CAUGHT: dict[str, tuple[tuple[Strike, ...], str]] = {
    "acknowledge first": (BEFORE_STORED, "acknowledged and not stored"),
    "begin unmarked": (AFTER_A_SIDE_EFFECT, "not_executed and was begun"),
    "run side effects again": (AFTER_A_SIDE_EFFECT, "side effect begun 2 times"),
    "settle without release": ((), "live card"),
    "post without looking": (AFTER_THE_ANSWER, "answer"),
    "tear transactions": (IN_A_COMMIT, "calls_and_transcript_agree"),
    "forget to resume": (WHILE_CALLS_RUN, "the turns ended"),
}


@pytest.mark.parametrize("bug", CAUGHT)
async def test_a_planted_bug_is_caught_where_it_bites(bug: str, tmp_path: Path) -> None:
    strikes, words = CAUGHT[bug]
    outcome = await drive(Store(tmp_path), *strikes, plant=bug, stuck_after_s=SOON_S)
    assert outcome.reached
    assert any(words in fault for fault in outcome.faults), outcome


@pytest.mark.parametrize(
    "strikes",
    [(), BEFORE_STORED, WHILE_CALLS_RUN, AFTER_A_SIDE_EFFECT, AFTER_THE_ANSWER, IN_A_COMMIT],
    ids=lambda strikes: ", ".join(map(str, strikes)) or "undisturbed",
)
async def test_without_a_bug_the_same_points_are_survived(
    strikes: tuple[Strike, ...], tmp_path: Path
) -> None:
    outcome = await drive(Store(tmp_path), *strikes)
    assert outcome.reached
    assert outcome.faults == [], outcome.log


@pytest.mark.parametrize("bug", ["", "skip the fence"])
async def test_whoever_wakes_after_a_takeover_writes_only_where_the_fence_is_skipped(
    bug: str, tmp_path: Path
) -> None:
    store = PostgresStore(tmp_path)
    try:
        outcome = await drive(store, *BEFORE_A_REQUEST, plant=bug, stuck_after_s=SOON_S + 9)
    finally:
        store.close()
    assert outcome.reached
    assert bool(outcome.faults) is bool(bug), outcome


def test_every_plant_has_a_test() -> None:
    assert set(CAUGHT) | {"skip the fence"} == set(PLANTS)

"""Many runs: the points are learned, the strikes drawn, and a few driven at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from tests.kill_points.drive import Outcome, drive
from tests.kill_points.points import FAULTS_OF, KILLS, Fault, Kind, Life, Point, Strike
from tests.kill_points.world import Store

AT_A_TIME = 4

Tell = Callable[[Outcome], None]


async def learn(store: Store) -> list[Point]:
    """The points of an undisturbed run, in order."""
    outcome = await drive(store)
    assert not outcome.faults, f"{outcome}\n{outcome.log}"
    return outcome.passed


def _first(kind: Kind, life: Life, name: str, number: int, fault: Fault) -> Strike:
    return Strike(Point(life, kind, name, number), fault)


CRASHES = (
    # A batch of all three classes runs and a steer has been decided.
    _first(Kind.COMMIT, Life.FIRST, "decisions.decide: COMMIT", 2, Fault.KILL_AFTER),
    # A side effect has happened and nobody has written down how it ended.
    _first(Kind.CALL, Life.FIRST, "tool restart", 1, Fault.KILL_AFTER),
    # A turn is drained, and its card has not been told.
    _first(Kind.COMMIT, Life.FIRST, "settlements.settle_turn: COMMIT", 2, Fault.KILL_AFTER),
    # The answer stands in the thread, and the records do not know.
    _first(Kind.CALL, Life.RESUMED, "slack chat.postMessage", 1, Fault.KILL_AFTER),
)
"""From each of these a process recovers that is killed in its turn, at each of its points."""


async def learn_recovery(store: Store, first: Strike) -> list[Point]:
    """The points of the process that comes after a strike."""
    outcome = await drive(store, first)
    assert not outcome.faults, f"{outcome}\n{outcome.log}"
    return [point for point in outcome.passed if point.life is Life.RECOVERY]


async def second_crashes(store: Store) -> list[tuple[Strike, ...]]:
    """A SIGKILL, and another at each point of the process that recovers from it."""
    runs: list[tuple[Strike, ...]] = []
    for first in CRASHES:
        runs += [(first, second) for second in strikes(store, await learn_recovery(store, first), KILLS)]
    return runs


def strikes(store: Store, points: Iterable[Point], faults: Sequence[Fault]) -> list[Strike]:
    """Each of these faults at each of these points; who is frozen needs somebody else who goes on."""
    possible = [fault for fault in faults if store.takes_several or fault is not Fault.FREEZE]
    return [Strike(point, fault) for point in points for fault in possible if fault in FAULTS_OF[point.kind]]


def sample(runs: Sequence[tuple[Strike, ...]], one_in: int) -> list[tuple[Strike, ...]]:
    """One in so many, the same ones in every run."""
    return [run for run in runs if sum(strike.lot for strike in run) % one_in == 0]


async def drive_all(
    store: Store, runs: Sequence[tuple[Strike, ...]], tell: Tell = lambda _: None, at_a_time: int = AT_A_TIME
) -> list[Outcome]:
    """Drive each of these runs; one whose point was not reached is tried once more."""
    waiting = list(reversed(runs))
    outcomes: list[Outcome] = []

    async def work() -> None:
        while waiting:
            run = waiting.pop()
            outcome = await drive(store, *run)
            if not outcome.reached and not outcome.faults:
                outcome = await drive(store, *run)
            outcomes.append(outcome)
            tell(outcome)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_a_time):
            group.create_task(work())
    return outcomes

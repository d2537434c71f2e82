"""SIGKILL at every point of a scripted analysis: nothing is lost, nothing happens twice, all comes to rest.

`make kill-points` does more: errors, lost replies and hangs at every point, on both databases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.kill_points import campaign, table
from tests.kill_points.drive import Outcome
from tests.kill_points.points import KILLS, Point, Strike
from tests.kill_points.world import PostgresStore, Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

A_FIFTH, A_FEW = 5, 25


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Store]:
    store = PostgresStore(tmp_path)
    yield store
    store.close()


async def learned(store: Store) -> list[Point]:
    points = await campaign.learn(store)
    assert len(points) > 300, "the doors are not where the code goes through any more"
    return points


def runs(store: Store, points: Sequence[Point]) -> list[tuple[Strike, ...]]:
    return [(strike,) for strike in campaign.strikes(store, points, KILLS)]


def must_be_well(outcomes: Sequence[Outcome]) -> None:
    print(f"\n{table.table(outcomes)}\n{table.summary(outcomes)}")
    failed = [f"{outcome}\n{outcome.log[-4_000:]}" for outcome in outcomes if outcome.faults]
    assert not failed, "\n\n".join([f"{len(failed)} of {len(outcomes)} failed", *failed[:5]])
    reached = sum(outcome.reached for outcome in outcomes)
    assert reached >= 0.85 * len(outcomes), f"only {reached} of {len(outcomes)} points were reached"


async def test_sigkill_at_every_point_on_sqlite(tmp_path: Path) -> None:
    store = Store(tmp_path)
    must_be_well(await campaign.drive_all(store, runs(store, await learned(store))))


async def test_sigkill_at_a_fifth_of_the_points_on_postgres(postgres: Store) -> None:
    must_be_well(
        await campaign.drive_all(postgres, campaign.sample(runs(postgres, await learned(postgres)), A_FIFTH))
    )


async def test_a_second_sigkill_while_recovering_from_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    pairs = campaign.sample(await campaign.second_crashes(store), A_FEW)
    must_be_well(await campaign.drive_all(store, pairs))

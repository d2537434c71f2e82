"""A process looks at everything once a second, rings for what is due, and sees who is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import event

from bot.flow import look_around
from bot.flow.bells import Bells, Topic
from bot.flow.look_around import LookAround
from storage import tables as t
from storage.engine import Database
from storage.lookout import Lookout
from tests.storage.fresh import shared_postgres
from tests.storage.world import World


class Looking:
    """One process that looks around."""

    def __init__(self, database: Database, owner: str) -> None:
        self.bells = Bells()
        self.lookout = Lookout(database, owner, card_interval_s=3.0, card_grace_s=10.0)
        self.around = LookAround(self.lookout, database, self.bells, poll_s=1.0)

    async def rung(self) -> set[Topic]:
        """The bells that one look rings."""
        await self.around.look()
        return {topic for topic in Topic if await self.bells.of(topic).wait(0.001)}


@asynccontextmanager
async def looking(database: Database, owner: str = "p1") -> AsyncIterator[Looking]:
    """A process that looks around, for a while."""
    one = Looking(database, owner)
    try:
        yield one
    finally:
        await one.lookout.close()


@pytest.fixture(autouse=True)
def _settles_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_around, "SETTLED_S", 0.0)


async def test_it_rings_for_what_is_due_and_for_nothing_else(database: Database) -> None:
    await rings_for_what_is_due(database)


async def test_it_rings_for_what_is_due_on_a_database_that_others_use_too(shared: Database) -> None:
    await rings_for_what_is_due(shared)


async def rings_for_what_is_due(database: Database) -> None:
    world = World(database)
    async with looking(database) as one:
        assert await one.rung() == set()
        await world.says()
        assert await one.rung() == {Topic.WORK, Topic.RECEIPTS}
        await world.starts()
        await world.loses_its_worker()
        assert Topic.DEAD in await one.rung()


async def test_what_is_due_soon_is_rung_for_when_it_is(database: Database) -> None:
    world = World(database)
    await world.says()
    await world.change(t.conversations, {}, not_before=await world.now() + 0.2)
    async with looking(database) as one:
        assert Topic.WORK not in await one.rung()
        async with asyncio.timeout(2):
            await one.bells.of(Topic.WORK).wait()


async def lease_left(world: World) -> float:
    return float((await world.conversation()).lease_expires) - await world.now()


async def test_the_leases_of_a_process_that_is_gone_end_at_once(shared: Database) -> None:
    world = World(shared)
    async with looking(shared, "p2") as other, looking(shared, "p1") as one:
        await other.around.look()
        await world.says()
        await world.starts("p2")
        for _ in range(3):
            await one.around.look()
        assert await lease_left(world) > 10  # it lives
        await other.lookout.close()
        await one.around.look()
        assert await lease_left(world) > 10  # once is not enough
        await one.around.look()
        assert await lease_left(world) < 0
        assert Topic.DEAD in await one.rung()


async def test_a_process_that_is_heard_again_keeps_its_leases(shared: Database) -> None:
    world = World(shared)
    async with looking(shared, "p2") as other, looking(shared, "p1") as one:
        await other.around.look()
        await world.says()
        await world.starts("p2")
        await other.lookout.close()
        await one.around.look()
        await other.around.look()  # it connects anew
        await one.around.look()
        await one.around.look()
        assert await lease_left(world) > 10


async def test_after_a_trouble_of_the_database_nobody_is_called_gone_too_early(
    shared: Database, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_around, "SETTLED_S", 60.0)
    world = World(shared)
    async with looking(shared, "p1") as one:
        await one.around.look()
        await world.says()
        await world.starts("p2")  # which nobody hears
        for _ in range(3):
            await one.around.look()
        assert await lease_left(world) > 10


async def test_when_the_database_comes_back_everything_is_looked_at_once(
    shared: Database, shared_url: str
) -> None:
    async with looking(shared) as one:
        assert await one.rung() == set()
        await shared_postgres().end_sessions(shared_url.rpartition("/")[2])
        await asyncio.sleep(0.1)
        assert await one.rung() == set()
        assert one.lookout.reasons()
        assert await one.rung() == set(Topic)
        assert one.lookout.reasons() == []


async def test_an_idle_look_is_one_query(shared: Database) -> None:
    statements: list[str] = []
    async with looking(shared) as one:
        await one.around.look()
        engine = one.lookout._engine
        assert engine is not None
        event.listen(
            engine.sync_engine, "before_cursor_execute", lambda *given: statements.append(str(given[2]))
        )
        for _ in range(5):
            await one.around.look()
    assert len(statements) == 5

"""A worker that drains leaves nothing half taken."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from sqlalchemy import event

from storage.engine import Database
from tests.bot.flow.ports import NoTools, SilentModel, surroundings, worker_on
from tests.storage.world import World


async def test_a_claim_that_is_under_way_when_the_drain_begins_is_given_back(database: Database) -> None:
    world, model = World(database), SilentModel()
    await world.says()
    worker = worker_on(surroundings(database, model))
    claiming = asyncio.Event()
    event.listen(database._writer.sync_engine, "begin", lambda _: claiming.set())
    loop = asyncio.create_task(worker.run())
    await claiming.wait()
    assert await worker.drain(5) == 0
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop
    assert worker.running == 0
    assert not model.asked.is_set()
    assert (await world.conversation()).lease_owner is None
    assert await world.claims("w2") is not None


class LateTools(NoTools):
    """Tools whose servers do not answer yet."""

    def __init__(self) -> None:
        self.awaited = asyncio.Event()

    async def ready(self) -> list[str]:
        self.awaited.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_conversation_that_still_waits_for_tools_is_given_back_at_once(database: Database) -> None:
    world, tools = World(database), LateTools()
    await world.says()
    worker = worker_on(replace(surroundings(database, SilentModel()), tools=tools))
    loop = asyncio.create_task(worker.run())
    await tools.awaited.wait()
    async with asyncio.timeout(2):
        assert await worker.drain(60) == 0
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop
    assert (await world.conversation()).lease_owner is None
    assert await world.claims("w2") is not None


async def test_a_turn_that_does_not_reach_a_safe_point_in_time_is_left_to_its_lease(
    database: Database,
) -> None:
    world, model = World(database), SilentModel()
    await world.says()
    worker = worker_on(
        surroundings(database, model, poll_s=60)
    )  # `draining` of these surroundings stays False
    loop = asyncio.create_task(worker.run())
    await model.asked.wait()
    assert await worker.drain(0.05) == 1
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop
    assert (await world.conversation()).active_turn is not None
    assert await world.reasons() == []

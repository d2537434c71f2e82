"""Whoever has lost the lease can write nothing: every fenced transaction is tried with an old token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import select

from core import settle
from core.history import Call, assistant
from core.signals import Held, Signal
from storage import conversations, settlements, signals, steps, turns
from storage.engine import Database
from storage.errors import Fenced
from storage.fence import Fence
from storage.tables import metadata
from tests.storage.world import READ, WRITE, World, ok, plan, stale

Write = Callable[[Database, Fence], Awaitable[Any]]

BUILT_OF: dict[str, Write] = {
    "start": lambda db, fence: db.write(turns.start, Fence(fence.conversation_id, fence.token), "w1", 0.0),
    "release": lambda db, fence: db.write(conversations.release, Fence(fence.conversation_id, fence.token)),
    "set_aside": lambda db, fence: db.write(
        conversations.set_aside, Fence(fence.conversation_id, fence.token)
    ),
    "commit": lambda db, fence: db.write(
        steps.commit, fence, assistant(Call("n", "logs", {})), [plan("n")], [], seen=99, past_steers=True
    ),
    "begin": lambda db, fence: db.write(steps.begin, fence, "w"),
    "result": lambda db, fence: db.write(steps.record_result, fence, "a", ok()),
    "close": lambda db, fence: db.write(steps.close, fence, Held(Signal.STEER, "Ben")),
    "say": lambda db, fence: db.write(steps.say, fence, "Thinking"),
    "settle": lambda db, fence: db.write(settlements.settle_turn, fence, "w1", settle.failed("x"), seen=99),
    "probe": lambda db, fence: db.read(signals.first_held, fence),
}


async def everything(world: World) -> dict[str, list[Any]]:
    """The whole database."""

    async def query(tx: Any) -> dict[str, list[Any]]:
        return {
            table.name: [tuple(row) for row in (await tx.execute(select(table))).all()]
            for table in metadata.sorted_tables
        }

    return await world.database.read(query)


@pytest.mark.parametrize("name", BUILT_OF)
async def test_an_old_token_can_do_nothing(world: World, name: str) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE))
    before = await everything(world)
    with pytest.raises(Fenced):
        await BUILT_OF[name](world.database, stale(turn.fence))
    assert await everything(world) == before


@pytest.mark.parametrize(
    "name", [name for name in BUILT_OF if name not in {"start", "release", "set_aside", "probe"}]
)
async def test_a_turn_that_was_settled_by_somebody_else_can_do_nothing(world: World, name: str) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE))
    await world.loses_its_worker()
    await world.reaps()
    before = await everything(world)
    with pytest.raises(Fenced):
        await BUILT_OF[name](world.database, turn.fence)
    assert await everything(world) == before


@pytest.mark.parametrize("name", ["commit", "result", "settle", "begin", "close", "say"])
async def test_a_settled_turn_can_do_nothing_though_its_token_is_still_the_newest(
    world: World, name: str
) -> None:
    turn = await world.begins()
    await world.settles(turn)
    with pytest.raises(Fenced):
        await BUILT_OF[name](world.database, turn.fence)

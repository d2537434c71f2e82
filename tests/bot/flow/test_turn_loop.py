"""A turn that is lost ends here at once, and what it has cost is booked all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from bot.flow.turn_loop import TurnRun
from core.reasons import Reason
from storage import tables as t
from storage.engine import Database
from storage.errors import Fenced
from tests import invariants
from tests.bot.flow.ports import SilentModel, surroundings
from tests.storage.world import World


async def test_a_turn_that_was_taken_over_ends_here_and_its_request_is_booked(database: Database) -> None:
    world, model = World(database), SilentModel()
    run = asyncio.create_task(TurnRun(surroundings(database, model), await world.begins()).run())
    await model.asked.wait()
    await world.loses_its_worker()
    await world.reaps()
    async with asyncio.timeout(5):
        with pytest.raises(Fenced):
            await run
    [request] = await world.rows(t.requests)
    assert (request.model, request.input_tokens, request.cost_usd, request.exact) == (
        "silent",
        100,
        0.5,
        False,
    )
    assert await invariants.broken(database) == []


async def test_records_that_fail_while_the_turn_only_listens_end_it(database: Database) -> None:
    """Else nobody would hear bells, poll or watch the turn's limit any more."""
    world, model = World(database), SilentModel()
    started = await world.begins()

    async def break_cards(tx: Any) -> None:
        await tx.execute(text("alter table cards rename to no_cards"))

    await database.write(break_cards)
    async with asyncio.timeout(5):
        with pytest.raises(OperationalError):
            await TurnRun(surroundings(database, model), started).run()


async def test_a_steer_breaks_the_request_off_and_both_are_recorded(database: Database) -> None:
    world, model = World(database), SilentModel()
    run = asyncio.create_task(TurnRun(surroundings(database, model), await world.begins()).run())
    await model.asked.wait()
    await world.says("look at the deploy", "Ben")
    async with asyncio.timeout(5):
        assert await run is Reason.STEERED
    assert [row.cost_usd for row in await world.rows(t.requests)] == [0.5]

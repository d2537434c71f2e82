"""What people wait for is measured where it happens: the cut, the safe point, and the next turn's request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import text

from bot.flow.turn_loop import Surroundings, TurnRun
from bot.flow.watch_turn import TurnWatch
from bot.measures import Measures
from bot.ports import Hurry, ToolCall
from core.generation import Generated, GenerationOutcome, ModelRequest, StopReason
from core.history import Call, Text, assistant
from core.reasons import Reason
from core.tools import CallResult, Outcome, ToolClass, ToolSpec
from core.usage import Usage
from storage.engine import Database
from tests.bot.flow.ports import SilentModel, surroundings
from tests.storage.world import World


class OneCall:
    """A request that is answered at once with a call."""

    usage = Usage()
    doing = ""

    async def run(self) -> GenerationOutcome:
        message = assistant(Text("I look."), Call("a", "hold", {}))
        return Generated(message, StopReason.CALLS, Usage(), "caller")


class Caller:
    """A model that always calls the tool."""

    name = "caller"

    def __init__(self) -> None:
        self.requests = 0

    def open(self, request: ModelRequest) -> OneCall:
        self.requests += 1
        return OneCall()


class Holding:
    """A tool that ends a while after it is hurried, or by itself."""

    def __init__(self, takes_s: float, *, until_hurried: bool = True) -> None:
        self.reached = asyncio.Event()
        self._takes_s = takes_s
        self._until_hurried = until_hurried

    async def ready(self) -> list[str]:
        return []

    def specs(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec("hold", "Holds.", {"type": "object"}, ToolClass.READ_ONLY, interruptible=True),)

    async def run(self, call: ToolCall, hurry: Hurry) -> CallResult:
        self.reached.set()
        if self._until_hurried:
            await hurry.wait()
        await asyncio.sleep(self._takes_s)
        return CallResult(Outcome.STOPPED, "stopped")


def value(around: Surroundings, name: str, labels: Mapping[str, str] | None = None) -> float:
    found = around.measures.registry.get_sample_value(f"watchkeeper_{name}", dict(labels or {}))
    assert found is not None, name
    return found


async def steered(world: World, around: Surroundings, model: SilentModel) -> None:
    """A turn begins and is steered while the model generates."""
    run = asyncio.create_task(TurnRun(around, await world.begins()).run())
    await model.asked.wait()
    await world.says("look at the deploy", "Ben")
    async with asyncio.timeout(5):
        assert await run is Reason.STEERED


async def test_a_steer_is_measured_until_its_cut_is_settled(database: Database) -> None:
    world, model = World(database), SilentModel()
    around = surroundings(database, model)
    await steered(world, around, model)
    assert value(around, "turns_settled_total", {"reason": "steered"}) == 1
    assert value(around, "steer_cut_seconds_count", {"signal": "steer"}) == 1
    assert value(around, "steer_cut_seconds_count", {"signal": "stop"}) == 0
    assert value(around, "steer_cut_seconds_sum", {"signal": "steer"}) < 5


async def test_a_steer_is_measured_until_the_model_is_asked_with_it_once(database: Database) -> None:
    world, model = World(database), SilentModel()
    around = surroundings(database, model)
    await steered(world, around, model)
    assert value(around, "steer_read_seconds_count") == 0
    await world.falls_quiet()
    caller = Caller()
    around = replace(around, model=caller, tools=Holding(takes_s=0.0, until_hurried=False))
    run = asyncio.create_task(TurnRun(around, await world.starts()).run())
    async with asyncio.timeout(10):
        while caller.requests < 3:
            await asyncio.sleep(0.01)
        await world.stops()
        assert await run is Reason.STOPPED
    assert value(around, "steer_read_seconds_count") == 1
    assert value(around, "steer_cut_seconds_count", {"signal": "stop"}) == 1


async def test_a_safe_point_is_measured_from_the_hurrying_of_the_calls(database: Database) -> None:
    world, tools = World(database), Holding(takes_s=0.4)
    around = replace(surroundings(database, SilentModel()), model=Caller(), tools=tools)
    run = asyncio.create_task(TurnRun(around, await world.begins()).run())
    await tools.reached.wait()
    await world.says("look at the deploy", "Ben")
    async with asyncio.timeout(5):
        assert await run is Reason.STEERED
    assert value(around, "safe_point_wait_seconds_count", {"signal": "steer"}) == 1
    assert 0.4 <= value(around, "safe_point_wait_seconds_sum", {"signal": "steer"}) < 3


async def test_a_cut_while_nothing_is_open_waited_for_no_safe_point(database: Database) -> None:
    world, model = World(database), SilentModel()
    around = surroundings(database, model)
    await steered(world, around, model)
    assert value(around, "safe_point_wait_seconds_count", {"signal": "steer"}) == 0


async def test_a_number_that_cannot_be_read_harms_no_turn(database: Database) -> None:
    world, measures = World(database), Measures()
    started = await world.begins()

    async def break_tombstones(tx: Any) -> None:
        await tx.execute(text("alter table tombstones rename to no_tombstones"))

    await database.write(break_tombstones)
    await TurnWatch(database, measures, started).settled(Reason.STOPPED)
    settled = measures.registry.get_sample_value("watchkeeper_turns_settled_total", {"reason": "stopped"})
    cut = measures.registry.get_sample_value("watchkeeper_steer_cut_seconds_count", {"signal": "stop"})
    assert (settled, cut) == (1, 0)

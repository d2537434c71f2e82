"""The smallest surroundings of a turn: a model and tools that do nothing until they are told to."""

from __future__ import annotations

import asyncio

from bot.flow.bells import Bells
from bot.flow.turn_loop import Limits, Surroundings
from bot.flow.worker import Worker, WorkLimits
from bot.measures import Measures
from bot.ports import Hurry, ToolCall
from core.generation import GenerationOutcome, ModelRequest
from core.tools import CallResult, ToolSpec, not_executed
from core.usage import Usage
from storage.engine import Database


class SilentGeneration:
    """A request that has cost something and never comes to an end by itself."""

    usage = Usage(100, 7, cost_usd=0.5, exact=False)
    doing = "Thinking"

    async def run(self) -> GenerationOutcome:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class SilentModel:
    """A model that says nothing."""

    name = "silent"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def open(self, request: ModelRequest) -> SilentGeneration:
        self.asked.set()
        return SilentGeneration()


class NoTools:
    """No tools at all."""

    async def ready(self) -> list[str]:
        return []

    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    async def run(self, call: ToolCall, hurry: Hurry) -> CallResult:
        return not_executed("there are no tools")


def surroundings(database: Database, model: SilentModel, *, poll_s: float = 0.01) -> Surroundings:
    """What a turn works with, nothing of it slow."""
    return Surroundings(
        database=database,
        bells=Bells(),
        model=model,
        tools=NoTools(),
        instructions="",
        redact=lambda text: text,
        limits=Limits(poll_s=poll_s, turn_limit_s=60, retry_for_s=60, card_interval_s=0),
        worker="w1",
        draining=lambda: False,
        measures=Measures(),
    )


def worker_on(around: Surroundings) -> Worker:
    """A worker that needs no platform: the threads that it meets are new."""
    limits = WorkLimits(max_turns=4, lease_s=60, gather_s=0, resume_within_s=3600)
    return Worker(around, None, limits)  # type: ignore[arg-type]

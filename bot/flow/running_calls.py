"""The calls of a turn's batch: planned, marked started, run in parallel.

Each result is committed as it returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.flow.bells import Topic
from bot.flow.leases import Lease
from bot.ports import ToolCall
from core.call_ids import legalised
from core.events import CallReturned, Input
from core.generation import Generated
from core.history import Call, Json, Message
from core.resume import CallState, Resumption, closed_unrun
from core.tools import CallResult, ToolClass, not_executed
from storage import steps
from storage.steps import PlannedCall
from storage.turns import OpenCall, StartedTurn

if TYPE_CHECKING:
    from bot.flow.turn_loop import Surroundings

UNKNOWN_TOOL_LIMIT_S = 1.0


@dataclass(frozen=True, slots=True)
class _ToRun:
    """A committed call; `marked` says that the commit itself marked it started."""

    tool: str
    input: Mapping[str, Json]
    marked: bool
    unrun: CallResult | None = None


class RunningCalls:
    """Runs what was committed. A failure of the records (a lost lease) is posted as the exception it is."""

    def __init__(
        self,
        around: Surroundings,
        started: StartedTurn,
        post: Callable[[Input | Exception, int | None], None],
        lease: Lease,
    ) -> None:
        self._around = around
        self._lease = lease
        self._fence = started.fence
        self._post = post
        self._specs = {spec.name: spec for spec in around.tools.specs()}
        self._taken = set(started.used_call_ids)
        self._to_run = {call.id: _resumed(call) for call in started.open_calls}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurry = asyncio.Event()

    def plan(self, generated: Generated) -> tuple[Message, list[PlannedCall]]:
        """The message with legal, unique call ids, and its calls ready to be committed."""
        message, changed = legalised(generated.message, self._taken)
        refused = {changed.get(one.call_id, one.call_id): one.why for one in generated.invalid_calls}
        planned = [self._planned(call, refused.get(call.id)) for call in message.calls]
        for call in planned:
            self._taken.add(call.id)
            marked = call.tool_class is not ToolClass.SIDE_EFFECT
            self._to_run[call.id] = _ToRun(call.tool, call.input, marked)
        return message, planned

    def _planned(self, call: Call, refused: str | None) -> PlannedCall:
        spec = self._specs.get(call.name)
        tool_class = spec.tool_class if spec else ToolClass.READ_ONLY  # an unknown tool touches nothing
        limit_s = spec.timeout_s if spec else UNKNOWN_TOOL_LIMIT_S
        result = not_executed(refused) if refused else None
        return PlannedCall(call.id, call.name, tool_class, call.input, limit_s, result)

    def start(self, call_ids: tuple[str, ...]) -> None:
        """Run these calls, in parallel."""
        self._hurry = asyncio.Event()
        for call_id in call_ids:
            task = asyncio.create_task(self._run(call_id, self._to_run[call_id]), name=f"call {call_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def hurry(self) -> None:
        """Ask interruptible tools to stop."""
        self._hurry.set()

    async def abandon(self) -> None:
        """The turn is over or lost: stop what still runs here. Nothing more is recorded."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, call_id: str, call: _ToRun) -> None:
        try:
            result = call.unrun or await self._execute(call_id, call)
            await self._around.database.write(steps.record_result, self._fence, call_id, result)
        except Exception as error:  # noqa: BLE001  the turn's loop raises it
            self._post(error, None)
            return
        self._around.bells.ring(Topic.CARDS, *((Topic.POSTS,) if result.charts else ()))
        self._post(CallReturned(call_id), None)

    async def _execute(self, call_id: str, call: _ToRun) -> CallResult:
        if not call.marked:
            await self._around.database.write(steps.begin, self._fence, call_id)
            self._around.bells.ring(Topic.CARDS)
        self._lease.require()
        return await self._around.tools.run(ToolCall(call_id, call.tool, dict(call.input)), self._hurry)


def _resumed(call: OpenCall) -> _ToRun:
    """A call that a dead turn left open: run again, or closed with the truth."""
    unrun = None
    if call.resumption is Resumption.CLOSE_NOT_EXECUTED:
        unrun = closed_unrun(CallState.ISSUED)
    elif call.resumption is Resumption.CLOSE_UNKNOWN:
        unrun = closed_unrun(CallState.STARTED)
    return _ToRun(call.tool, call.input, marked=False, unrun=unrun)

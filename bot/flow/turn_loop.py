"""One turn, from its start to its settle record: gather, decide, perform, record.

The decisions are `core.turn`'s. This loop feeds it facts and performs what it asks for; it decides nothing
itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from bot.flow.bells import Bell, Bells, Topic
from bot.flow.generating import Generating
from bot.flow.leases import Lease
from bot.flow.running_calls import RunningCalls
from bot.flow.watch_turn import TurnWatch
from bot.measures import Measures
from bot.ports import Model, Tools
from core import turn as rules
from core.effects import AskModel, BreakOff, CloseBatch, Commit, Effect, Hurry, Probe, RunCalls, Settle, Wait
from core.events import (
    BatchClosed,
    Began,
    BellRang,
    CommitRefused,
    Committed,
    Input,
    LimitReached,
    Probed,
    Settled,
    SettleRefused,
)
from core.history import Message
from core.reasons import Reason
from core.resume import Resumption
from core.signals import Signal
from core.turn import Phase, Turn
from storage import cards, settlements, signals, steps
from storage.engine import Database
from storage.errors import Signalled
from storage.turns import StartedTurn

log = structlog.get_logger()

PROTECTED_AFTER = 2
"""When so many generations in a row were discarded for steers, the next runs to its commit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a turn, in seconds, and how often it looks at the database though no bell rang."""

    poll_s: float
    turn_limit_s: float
    retry_for_s: float
    card_interval_s: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a turn works with. `draining` says whether this process is shutting down."""

    database: Database
    bells: Bells
    model: Model
    tools: Tools
    instructions: str
    redact: Callable[[str], str]
    limits: Limits
    worker: str
    draining: Callable[[], bool]
    measures: Measures


class TurnRun:
    """Drives one started turn to its end. Raises Fenced when the lease has moved on."""

    def __init__(self, around: Surroundings, started: StartedTurn, lease: Lease | None = None) -> None:
        self._around = around
        self._started = started
        self._fence = started.fence
        self._lease = lease or Lease(started.fence.conversation_id)
        self._turn = Turn(
            protected=started.discarded_in_a_row >= PROTECTED_AFTER, retry_for_s=around.limits.retry_for_s
        )
        self._queue: asyncio.Queue[tuple[int | None, Input | Exception]] = asyncio.Queue()
        self._answers: deque[Input] = deque()
        self._messages: list[Message] = list(started.messages)
        self._calls = RunningCalls(around, started, self._post, self._lease)
        self._generating = Generating(around, started, self._post)
        self._watch = TurnWatch(around.database, around.measures, started)
        self._reason: Reason | None = None

    async def run(self) -> Reason:
        """Run to the settle record and return its reason."""
        bell = self._around.bells.open_turn(self._fence.conversation_id)
        listening = asyncio.create_task(self._listen(bell), name=f"bell of {self._fence.turn_id}")
        self._answers.append(Began(self._open_calls()))
        try:
            while self._turn.phase is not Phase.SETTLED:
                await self._advance(await self._next())
        finally:
            listening.cancel()
            self._around.bells.close_turn(self._fence.conversation_id)
            await self._generating.break_off()
            await self._calls.abandon()
            await self._book_what_is_left()
        assert self._reason is not None
        return self._reason

    async def _book_what_is_left(self) -> None:
        """A turn that was lost here has spent its money all the same."""
        for booking in self._generating.take_bookings():
            await self._around.database.write(steps.book, self._fence, booking)

    def _open_calls(self) -> tuple[str, ...] | None:
        batch = self._started.open_calls
        if not batch:
            return None
        return tuple(call.id for call in batch if call.resumption is not Resumption.REUSE)

    async def _advance(self, given: Input) -> None:
        self._turn, effects = rules.decide(self._turn, given)
        for effect in effects:
            answer = await PERFORM[type(effect)](self, effect)
            if answer is not None:
                self._answers.append(answer)

    async def _next(self) -> Input:
        """The next fact. What a transaction answered goes before what was waiting."""
        while not self._answers:
            number, given = await self._queue.get()
            if isinstance(given, Exception):
                raise given
            if number is None or number == self._generating.number:  # else it was broken off meanwhile
                return given
        return self._answers.popleft()

    def _post(self, given: Input | Exception, number: int | None = None) -> None:
        self._queue.put_nowait((number, given))

    async def _listen(self, bell: Bell) -> None:
        try:
            await self._listen_for_ever(bell)
        except Exception as error:  # noqa: BLE001  the turn's loop raises it
            self._post(error)

    async def _listen_for_ever(self, bell: Bell) -> None:
        """Bells, the poll, the card's words and the limit of the turn."""
        limits = self._around.limits
        ends = asyncio.get_running_loop().time() + limits.turn_limit_s
        while True:
            rang = await bell.wait(limits.poll_s)
            if self._queue.qsize() < 2:  # a probe that waits looks at everything anyway
                self._post(BellRang())
            if not rang:  # else the words may be cut off at once, and would be in the way
                await self._generating.say_what_it_does()
            if asyncio.get_running_loop().time() >= ends:
                self._post(LimitReached(f"the turn took longer than {limits.turn_limit_s:g} s"))
                ends += limits.turn_limit_s

    # --- effects --------------------------------------------------------------------------------------------

    async def _probe(self, _: Probe) -> Input:
        here = {Signal.DRAIN: "shutdown"} if self._around.draining() else {}
        held = await self._around.database.glance(signals.first_held, self._fence, here)
        return Probed(held)

    async def _ask_model(self, effect: AskModel) -> None:
        self._lease.require()
        paused = () if effect.paused is None else (effect.paused,)
        self._generating.ask((*self._messages, *paused))
        await self._watch.asked_model()

    async def _break_off(self, _: BreakOff) -> None:
        await self._generating.break_off()

    async def _wait(self, effect: Wait) -> None:
        self._generating.wait(effect.seconds)
        words = f"{effect.cause}, try {effect.next_try} in {max(1, round(effect.seconds))} s"
        bookings = self._generating.take_bookings()
        await self._around.database.write(steps.say, self._fence, words, bookings)
        self._around.bells.ring(Topic.CARDS)

    async def _commit(self, effect: Commit) -> Input:
        message, planned = self._calls.plan(effect.generated)
        try:
            await self._around.database.write(
                steps.commit,
                self._fence,
                message,
                planned,
                self._generating.take_bookings(),
                seen=self._started.seen,
                past_steers=effect.past_steers,
            )
        except Signalled as refused:
            return CommitRefused(refused.held)
        self._messages.append(message)
        self._around.bells.ring(Topic.CARDS, Topic.RECEIPTS)
        return Committed(tuple(call.id for call in planned if call.result is None))

    async def _run_calls(self, _: RunCalls) -> None:
        self._calls.start(tuple(self._turn.balance.open))

    async def _hurry(self, effect: Hurry) -> None:
        self._calls.hurry()
        if effect.held is None:
            return
        self._watch.hurried(effect.held)
        urgent = effect.held.signal is Signal.STOP
        await self._around.database.write(cards.want, self._fence.turn_id, urgent=urgent)
        self._around.bells.ring(Topic.CARDS)

    async def _close_batch(self, effect: CloseBatch) -> Input:
        self._watch.balanced(effect.stamp)
        self._messages.append(await self._around.database.write(steps.close, self._fence, effect.stamp))
        self._around.bells.ring(Topic.CARDS)
        return BatchClosed()

    async def _settle(self, effect: Settle) -> Input:
        try:
            standing = await self._around.database.write(
                settlements.settle_turn,
                self._fence,
                self._around.worker,
                effect.ending,
                seen=self._started.seen,
                bookings=self._generating.bookings,
            )
        except Signalled as refused:
            return SettleRefused(refused.held)
        self._generating.take_bookings()
        self._reason = standing.reason
        log.info(
            "settled", turn=self._fence.turn_id, reason=standing.reason, by=standing.by, cause=standing.cause
        )
        self._around.bells.ring(Topic.WORK)
        ring = self._around.bells.ring_soon if standing.reason is Reason.STEERED else self._around.bells.ring
        ring(Topic.CARDS, Topic.POSTS, Topic.RECEIPTS)
        await self._watch.settled(standing.reason)
        return Settled()


PERFORM: Mapping[type[Effect], Callable[[TurnRun, Any], Awaitable[Input | None]]] = {
    Probe: TurnRun._probe,
    AskModel: TurnRun._ask_model,
    BreakOff: TurnRun._break_off,
    Wait: TurnRun._wait,
    Commit: TurnRun._commit,
    RunCalls: TurnRun._run_calls,
    Hurry: TurnRun._hurry,
    CloseBatch: TurnRun._close_batch,
    Settle: TurnRun._settle,
}
"""Every side effect of a turn."""

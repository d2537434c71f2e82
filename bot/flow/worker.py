"""The worker: waits for work, claims a conversation, starts its turn, and runs as many at once as it may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.errors import Permanent, Temporary
from bot.flow.bells import Topic
from bot.flow.turn_loop import Surroundings, TurnRun
from bot.ports import Chat
from storage import conversations, inbox, turns
from storage.conversations import Claimed
from storage.errors import Fenced
from storage.fence import Fence

log = structlog.get_logger()

HISTORY_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """Bounds of a worker's work; all but `max_turns` in seconds."""

    max_turns: int
    lease_s: float
    gather_s: float
    resume_within_s: float


class Worker:
    """Claims and runs turns until it is told to drain."""

    def __init__(self, around: Surroundings, chat: Chat, limits: WorkLimits) -> None:
        self._around = around
        self._chat = chat
        self._limits = limits
        self._running: dict[Fence, asyncio.Task[None]] = {}
        self._draining = False
        self._drain_began = asyncio.Event()
        self._claiming = asyncio.Lock()

    @property
    def draining(self) -> bool:
        """Whether no new turn starts here any more."""
        return self._draining

    @property
    def running(self) -> int:
        """How many conversations are being worked on."""
        return len(self._running)

    async def run(self) -> None:
        """Claim and run for ever."""
        while True:
            async with self._claiming:
                patience = await self._claim_all()
            await self._around.bells.of(Topic.WORK).wait(patience)

    async def renew_leases(self) -> None:
        """Renew for ever; a turn whose lease is lost is given up at once."""
        while True:
            await asyncio.sleep(self._limits.lease_s / 3)
            fences = list(self._running)
            if not fences:
                continue
            for lost in await self._around.database.write(conversations.renew, fences, self._limits.lease_s):
                log.warning("lease_lost", conversation=lost.conversation_id)
                if task := self._running.get(lost):
                    task.cancel()

    async def drain(self, timeout_s: float) -> int:
        """Start nothing new and cut running turns at their next safe points.

        Returns how many are left to their lease.
        """
        self._draining = True
        self._drain_began.set()
        async with self._claiming:  # a claim that is under way becomes one of the running tasks first
            self._around.bells.ring_all_turns()
        tasks = list(self._running.values())
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=timeout_s)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
            return len(left)
        return 0

    async def _claim_all(self) -> float:
        """Claim what may be claimed; returns how long nothing more is to be had unless the bell rings."""
        poll_s = self._around.limits.poll_s
        while not self._draining and len(self._running) < self._limits.max_turns:
            soonest = await self._around.database.read(conversations.soonest)
            if soonest is None:
                return poll_s
            if soonest > 0:
                return min(poll_s, soonest + 0.005)
            claimed = await self._around.database.write(
                conversations.claim, self._around.worker, self._limits.lease_s
            )
            if claimed is None:  # somebody else was quicker
                return poll_s
            task = asyncio.create_task(self._work(claimed), name=f"work on {claimed.fence.conversation_id}")
            self._running[claimed.fence] = task
            task.add_done_callback(partial(self._done, claimed.fence))
        return poll_s

    def _done(self, fence: Fence, _: asyncio.Task[None]) -> None:
        was_full = len(self._running) >= self._limits.max_turns
        self._running.pop(fence, None)
        if was_full:  # else whoever left work behind has rung for it
            self._around.bells.ring(Topic.WORK)

    async def _work(self, claimed: Claimed) -> None:
        try:
            await self._take_up(claimed)
        except Fenced:
            log.info("fenced", conversation=claimed.fence.conversation_id)
        except Exception:
            log.exception("turn_lost", conversation=claimed.fence.conversation_id)

    async def _take_up(self, claimed: Claimed) -> None:
        database = self._around.database
        if claimed.waited_s > self._limits.resume_within_s:
            await database.write(conversations.set_aside, claimed.fence)
            self._around.bells.ring(Topic.POSTS, Topic.RECEIPTS)
            return
        notices = await self._unless_draining(self._prepare(claimed))
        if notices is None:
            await database.write(conversations.release, claimed.fence)
            return
        started = await database.write(
            turns.start, claimed.fence, self._around.worker, self._limits.gather_s, notices
        )
        bells = self._around.bells
        goes_on = started is not None and started.discarded_in_a_row > 0  # on a card that is there already
        (bells.ring_soon if goes_on else bells.ring)(Topic.CARDS, Topic.RECEIPTS)
        if started is None:
            return
        log.info("started", conversation=started.fence.conversation_id, turn=started.fence.turn_id)
        await TurnRun(self._around, started).run()

    async def _prepare(self, claimed: Claimed) -> list[str]:
        """Wait for what the first request needs; returns what the model must be told is missing."""
        notices = await self._read_history(claimed) if claimed.history_wanted else []
        return [*notices, *(await self._around.tools.ready())]

    async def _unless_draining(self, work: Coroutine[None, None, list[str]]) -> list[str] | None:
        """What the work gives; None as soon as this process drains, since no turn begins here any more."""
        preparing = asyncio.create_task(work, name="prepare a turn")
        draining = asyncio.create_task(self._drain_began.wait(), name="wait for a drain")
        try:
            await asyncio.wait({preparing, draining}, return_when=asyncio.FIRST_COMPLETED)
            return None if self._draining else preparing.result()
        finally:
            for task in (preparing, draining):
                task.cancel()
            await asyncio.gather(preparing, draining, return_exceptions=True)

    async def _read_history(self, claimed: Claimed) -> list[str]:
        """Store what stood in the thread before; returns what the model is told when it could not be read."""
        try:
            async with asyncio.timeout(HISTORY_LIMIT_S):
                earlier = await self._chat.earlier_messages(claimed.thread, claimed.wished_at)
        except (Temporary, Permanent, TimeoutError) as error:
            log.warning("history_missing", conversation=claimed.fence.conversation_id, error=str(error))
            await self._around.database.write(
                inbox.add_history, claimed.fence.conversation_id, [], complete=False
            )
            return ["The earlier messages of this thread could not be read."]
        redact = self._around.redact
        cleaned = [replace(message, text=redact(message.text)) for message in earlier]
        await self._around.database.write(
            inbox.add_history, claimed.fence.conversation_id, cleaned, complete=True
        )
        return []

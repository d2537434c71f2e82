"""The worker: waits for work, claims a conversation, starts its turn, and runs as many at once as it may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.errors import Permanent, Temporary
from bot.flow.bells import Topic
from bot.flow.leases import Lease, Leases, clock_s
from bot.flow.turn_loop import Surroundings, TurnRun
from bot.ports import Chat
from storage import conversations, inbox, turns
from storage.conversations import Claimed
from storage.errors import CommitUnknown, DatabaseTrouble, Fenced
from storage.fence import Fence

log = structlog.get_logger()

HISTORY_LIMIT_S = 10.0

LAST_PATIENCE_S = 1.0

CLAIM_AT_ONCE = 4
"""What waits is spread: whoever comes first does not take all that the others could begin with too."""


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
        self._leases = Leases(around.database, limits.lease_s, self._lease_lost)
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

    # --- loops ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Claim and run for ever."""
        while True:
            async with self._claiming:
                patience = await self._claim_all()
            await self._around.bells.of(Topic.WORK).wait(patience)

    async def renew_leases(self) -> None:
        """Renew for ever."""
        await self._leases.renew()

    async def watch_leases(self) -> None:
        """Give up for ever what is worked on without a lease."""
        await self._leases.watch()

    async def let_go(self) -> None:
        """End the leases of what was given up here, for ever: whoever comes need not wait for them."""
        while True:
            await self._around.bells.of(Topic.LOST).wait()
            async with self._claiming:  # what is being claimed now is not running yet
                kept = [fence.conversation_id for fence in self._running]
                await self._around.database.write(conversations.let_go, self._around.worker, kept)
            self._around.bells.ring(Topic.DEAD, Topic.WORK)

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
            self._around.database.patience_s = LAST_PATIENCE_S  # nobody waits for a database that is away
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
            return len(left)
        return 0

    # --- claiming -------------------------------------------------------------------------------------------

    async def _claim_all(self) -> float | None:
        """Claim what may be claimed; returns after how long more is to be had, None: when the bell rings."""
        while not self._draining and (free := self._limits.max_turns - len(self._running)) > 0:
            soonest = await self._around.database.glance(conversations.soonest)
            if soonest is None or soonest > 0:
                return None if soonest is None else soonest + 0.005
            if not await self._claim(min(free, CLAIM_AT_ONCE)):  # somebody else was quicker
                return None
        return None

    async def _claim(self, most: int) -> bool:
        """Take what waits, in its order; whether there was any."""
        since = clock_s()
        try:
            claimed = await self._around.database.write(
                conversations.claim, self._around.worker, self._limits.lease_s, most
            )
        except CommitUnknown:
            self._around.bells.ring_here(Topic.LOST)  # what was claimed without our knowing it is let go
            raise
        for one in claimed:
            lease = self._leases.hold(one.fence, since)
            task = asyncio.create_task(self._work(one, lease), name=f"work on {one.fence.conversation_id}")
            self._running[one.fence] = task
            task.add_done_callback(partial(self._done, one.fence))
        self._around.measures.running(len(self._running))
        return bool(claimed)

    def _lease_lost(self, fence: Fence) -> None:
        self._around.measures.lease_lost()
        if task := self._running.get(fence):
            task.cancel()

    def _done(self, fence: Fence, task: asyncio.Task[None]) -> None:
        was_full = len(self._running) >= self._limits.max_turns
        self._running.pop(fence, None)
        self._leases.drop(fence)
        self._around.measures.running(len(self._running))
        if was_full:  # else whoever left work behind has rung for it
            self._around.bells.ring_here(Topic.WORK)

    # --- working --------------------------------------------------------------------------------------------

    async def _work(self, claimed: Claimed, lease: Lease) -> None:
        conversation = claimed.fence.conversation_id
        try:
            await self._take_up(claimed, lease)
        except Fenced:
            log.info("fenced", conversation=conversation)
            if not lease.was_lost:  # else it is counted
                self._around.measures.lease_lost()
        except DatabaseTrouble as error:
            log.warning("turn_lost", conversation=conversation, error=str(error))
            self._around.bells.ring_soon(Topic.LOST)
        except Exception:
            log.exception("turn_lost", conversation=conversation)
            self._around.bells.ring_soon(Topic.LOST)

    async def _take_up(self, claimed: Claimed, lease: Lease) -> None:
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
        await TurnRun(self._around, started, lease).run()

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

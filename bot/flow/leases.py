"""Leases as this process knows them: until when it may begin something outside.

Rule 1: a lease counts from the moment at which its renewal was sent, by a clock that goes on while the host
sleeps, and ends a margin before the database ends it.
Rule 2: nothing is begun outside without a lease, and what runs is given up when it ends, whatever the
database says or does not say meanwhile. The token keeps the records safe; this keeps the world safe.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import structlog

from storage import conversations
from storage.engine import Database
from storage.errors import DatabaseTrouble, Fenced
from storage.fence import Fence

log = structlog.get_logger()

LARGEST_MARGIN_S = 2.0
RENEWALS = 3
"""A lease is renewed so often in its time."""

CHECKS = 20
"""A lease's end is looked for so often in its time."""


def clock_s() -> float:
    """Seconds that pass while the host sleeps too, where the system can tell (CLOCK_BOOTTIME)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The lease of one conversation."""

    def __init__(self, conversation_id: str, ends_at: float = math.inf) -> None:
        self._conversation_id = conversation_id
        self.ends_at = ends_at

    @property
    def is_over(self) -> bool:
        """Whether nothing may be begun under it any more."""
        return clock_s() >= self.ends_at

    @property
    def was_lost(self) -> bool:
        """Whether `lost` was called for it."""
        return self.ends_at == -math.inf

    def require(self) -> None:
        """Raise Fenced when it is over: another worker may have taken over by now."""
        if self.is_over:
            raise Fenced(self._conversation_id)


class Leases:
    """The leases of one worker. `lost` is called for each that ended or was taken over, once."""

    def __init__(self, database: Database, lease_s: float, lost: Callable[[Fence], None]) -> None:
        self._database = database
        self._lease_s = lease_s
        self._margin_s = min(LARGEST_MARGIN_S, lease_s / 5)
        self._lost = lost
        self._held: dict[Fence, Lease] = {}
        self._waiting: dict[Fence, asyncio.Task[None]] = {}

    def hold(self, fence: Fence, since: float) -> Lease:
        """A lease that was asked for at this time (`clock_s`)."""
        lease = self._held[fence] = Lease(fence.conversation_id, self._end(since))
        return lease

    def drop(self, fence: Fence) -> None:
        """Nobody here works under it any more."""
        self._held.pop(fence, None)

    async def renew(self) -> None:
        """Renew for ever."""
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS)
            if fences := list(self._held):
                await self._renew(fences)

    async def watch(self) -> None:
        """Give up for ever what is over: a renewal that hangs must not keep anybody waiting."""
        while True:
            await asyncio.sleep(self._lease_s / CHECKS)
            for fence in [fence for fence, lease in self._held.items() if lease.is_over]:
                log.warning("lease_ran_out", conversation=fence.conversation_id)
                self._lose(fence)

    async def _renew(self, fences: list[Fence], *, waits: bool = False) -> None:
        """Renew all that can be at once; each of the others waits for its own lock, and for nobody else."""
        sent = clock_s()
        try:
            renewed = await self._database.write(conversations.renew, fences, self._lease_s, waits=waits)
        except DatabaseTrouble as error:
            log.warning("leases_not_renewed", error=str(error))
            return
        for fence in renewed.lost:
            log.warning("lease_lost", conversation=fence.conversation_id)
            self._lose(fence)
        for fence in renewed.kept & self._held.keys():
            self._held[fence].ends_at = self._end(sent)
        if not waits:
            for fence in set(fences) - renewed.kept - renewed.lost - self._waiting.keys():
                self._wait_for(fence)

    def _wait_for(self, fence: Fence) -> None:
        task = asyncio.create_task(self._renew([fence], waits=True), name="renew what was locked")
        self._waiting[fence] = task
        task.add_done_callback(lambda _: self._waiting.pop(fence, None))

    def _lose(self, fence: Fence) -> None:
        if lease := self._held.pop(fence, None):
            lease.ends_at = -math.inf
            self._lost(fence)

    def _end(self, since: float) -> float:
        return since + self._lease_s - self._margin_s

"""The claims of this process on what it shows: taken, renewed while held, given back together.

Nothing is begun that could outlive its claim. See `storage.claims` for why there are any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from bot.flow.leases import clock_s
from storage import claims
from storage.engine import Database
from storage.errors import DatabaseTrouble

log = structlog.get_logger()

CLAIM_S = 14.0
"""A claim outlives its process no longer than a lease does; renewed often, since a call may take long."""

RENEW_EVERY_S = 1.0
LONGEST_CALL_S = 10.5
"""The platform's client gives up on a call after ten seconds."""


class ClaimLapsed(Exception):
    """Another process may speak about this by now."""


class Claims:
    """Claims by the names of the things. On the embedded database everything is granted."""

    def __init__(self, database: Database, owner: str) -> None:
        self.owner = owner
        self._database = database
        self._ends_at: dict[str, float] = {}
        self._done: set[str] = set()
        self._something_done = asyncio.Event()

    async def take(self, things: Iterable[str]) -> set[str]:
        """Claim these; returns those that this process holds now."""
        wanted = set(things)
        self._done -= wanted
        if self._database.is_sqlite or not wanted:
            return wanted
        missing = sorted(thing for thing in wanted if not self._is_sure(thing))
        if missing:
            sent = clock_s()
            granted = await self._database.write(claims.take, missing, self.owner, CLAIM_S)
            self._ends_at |= dict.fromkeys(granted, sent + CLAIM_S)
        return {thing for thing in wanted if self._is_sure(thing)}

    def require(self, thing: str) -> None:
        """Raise ClaimLapsed unless a call that begins now ends before the claim does."""
        if not self._database.is_sqlite and not self._is_sure(thing):
            raise ClaimLapsed(thing)

    def give_back(self, thing: str) -> None:
        """Nothing more is said about it here; others are told in a moment."""
        if thing in self._ends_at:
            self._done.add(thing)
            self._something_done.set()

    async def give_back_all(self) -> None:
        """Before the process ends."""
        self._done |= set(self._ends_at)
        await self._give_back()

    async def run(self) -> None:
        """Renew what is held and give back what is done with, for ever."""
        renewed_at = clock_s()
        while True:
            try:
                async with asyncio.timeout(RENEW_EVERY_S):
                    await self._something_done.wait()
            except TimeoutError:
                pass
            self._something_done.clear()
            await self._give_back()
            if self._ends_at and clock_s() - renewed_at >= RENEW_EVERY_S:
                renewed_at = clock_s()
                await self._renew()

    def _is_sure(self, thing: str) -> bool:
        return clock_s() + LONGEST_CALL_S <= self._ends_at.get(thing, 0.0)

    async def _give_back(self) -> None:
        done, self._done = self._done, set()
        for thing in done:
            self._ends_at.pop(thing, None)
        if done:
            try:
                await self._database.write(claims.give_back, sorted(done), self.owner)
            except DatabaseTrouble as error:
                log.warning("claims_not_given_back", error=str(error))  # they lapse

    async def _renew(self) -> None:
        held, sent = sorted(self._ends_at), clock_s()
        kept = await self._database.write(claims.renew, held, self.owner, CLAIM_S)
        for thing in held:
            if thing in kept and thing in self._ends_at:
                self._ends_at[thing] = sent + CLAIM_S
            else:
                self._ends_at.pop(thing, None)

"""What is measured of one turn: how long a safe point took, and how long people waited for their word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.measures import ASKED, Measures
from core.reasons import Reason
from core.signals import Held, Signal
from storage import gauges
from storage.engine import Database
from storage.turns import StartedTurn

log = structlog.get_logger()

PATIENCE_S = 1.0
"""So long one number may hold up a turn while the database does not answer."""


class TurnWatch:
    """Measures one turn. Nothing that fails here may harm it: what cannot be read is not measured."""

    def __init__(self, database: Database, measures: Measures, started: StartedTurn) -> None:
        self._database = database
        self._measures = measures
        self._fence = started.fence
        self._may_hold_steers = len(started.messages) > 1  # the first turn of a thread has nothing before it
        self._hurried_at: dict[Signal, float] = {}

    def hurried(self, held: Held) -> None:
        """Open calls are hurried for this signal."""
        self._hurried_at.setdefault(held.signal, _monotonic())

    def balanced(self, held: Held | None) -> None:
        """No call is open any more; `held` is the signal that cuts the turn here."""
        began_at = None if held is None else self._hurried_at.get(held.signal)
        if held is not None and began_at is not None:
            self._measures.reached_safe_point(held.signal, _monotonic() - began_at)
        self._hurried_at.clear()

    async def asked_model(self) -> None:
        """A request is on its way; the first one carries the steers that this turn has read."""
        if self._may_hold_steers:
            self._may_hold_steers = False
            conversation_id, turn_id = self._fence.conversation_id, self._fence.turn_id
            waited_s = await self._read(lambda tx: gauges.steer_wait_s(tx, conversation_id, turn_id))
            if waited_s is not None:
                self._measures.steer_read(waited_s)

    async def settled(self, reason: Reason) -> None:
        """The settle record is written."""
        self._measures.settled(reason)
        if reason in ASKED:
            waited_s = await self._read(lambda tx: gauges.cut_wait_s(tx, self._fence.turn_id))
            if waited_s is not None:
                self._measures.cut(reason, waited_s)

    async def _read(self, query: Callable[[AsyncConnection], Awaitable[float | None]]) -> float | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._database.read(query)
        except Exception as error:  # noqa: BLE001  a turn does not fail for a number
            log.warning("not_measured", turn=self._fence.turn_id, error=str(error))
            return None


def _monotonic() -> float:
    return asyncio.get_running_loop().time()

"""The gauges of the whole fleet, read from the records when somebody asks for the numbers.

A scrape never waits long: the read under way is shared, what it found serves for a while, and while the
database does not answer the gauges are absent.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.measures import Fleet, Measures
from storage import gauges
from storage.engine import Database

log = structlog.get_logger()

FRESH_FOR_S = 2.0
PATIENCE_S = 1.0
"""So long one read may hold up scrapes, all of them together."""


class FleetWatcher:
    """Keeps the gauges of the fleet as fresh as they are asked for."""

    def __init__(self, database: Database, measures: Measures) -> None:
        self._database = database
        self._measures = measures
        self._reading: asyncio.Task[None] | None = None
        self._began_at = float("-inf")

    async def refresh(self) -> None:
        """Bring the gauges up to date, or take them away; returns within the patience of one read."""
        now = asyncio.get_running_loop().time()
        if self._reading is None and now - self._began_at >= FRESH_FOR_S:
            self._began_at = now
            self._reading = asyncio.create_task(self._read(), name="read the gauges of the fleet")
        if self._reading is None:
            return
        left = max(0.0, self._began_at + PATIENCE_S - now)
        _, late = await asyncio.wait({self._reading}, timeout=left)
        if late:
            self._measures.fleet_is(None)

    async def close(self) -> None:
        """Read nothing more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _read(self) -> None:
        try:
            found = await self._database.read(gauges.fleet)
        except Exception as error:  # noqa: BLE001  whatever it is, the gauges are not known
            log.warning("gauges_not_read", error=str(error))
            self._measures.fleet_is(None)
        else:
            self._measures.fleet_is(
                Fleet(found.outbox_age_s, found.oldest_unsettled_turn_s, found.unreleased_cards)
            )
        finally:
            self._reading = None

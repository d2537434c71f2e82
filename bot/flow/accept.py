"""The door: whatever comes in is stored before it is acknowledged.

Many that come at once are stored in one transaction; each is told of its own fate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from bot.flow.bells import Bells, Topic
from bot.ports import Incoming
from core.arrivals import Arrival, Deletion, Edit
from storage import inbox
from storage.engine import Database
from storage.inbox import Stored

log = structlog.get_logger()

LARGEST_BATCH = 100


class Acceptor:
    """Stores what comes in.

    `redact` cleans people's words of secrets; `on_lost_card` hears of buttons of unknown turns.
    """

    def __init__(
        self,
        database: Database,
        bells: Bells,
        redact: Callable[[str], str],
        on_lost_card: Callable[[Arrival], None],
    ) -> None:
        self._database = database
        self._bells = bells
        self._redact = redact
        self._on_lost_card = on_lost_card
        self._waiting: list[tuple[Incoming, asyncio.Future[Stored]]] = []
        self._storing: asyncio.Task[None] | None = None

    async def accept(self, incoming: Incoming) -> None:
        """Store one thing durably; raises when it could not be, and then it must not be acknowledged."""
        future: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append((incoming, future))
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_all(), name="store incoming")
        stored = await future
        if stored.unknown_turn and isinstance(incoming, Arrival):
            self._on_lost_card(incoming)

    async def _store_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:LARGEST_BATCH], self._waiting[LARGEST_BATCH:]
            await self._store(batch)
            self._bells.ring(Topic.DECISIONS)

    async def _store(self, batch: list[tuple[Incoming, asyncio.Future[Stored]]]) -> None:
        try:
            cleaned = [self._cleaned(incoming) for incoming, _ in batch]
            results = await self._database.write_first(inbox.ingest, cleaned)
        except Exception as error:  # noqa: BLE001  whoever handed it in raises it
            if len(batch) > 1:  # one that cannot be stored must not take the others with it
                for one in batch:
                    await self._store([one])
                return
            log.error("not_stored", error=str(error).partition("\n")[0])
            _tell(batch[0][1], error)
            return
        for (_, future), stored in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(stored)

    def _cleaned(self, incoming: Incoming) -> Incoming:
        match incoming:
            case Arrival() | Edit():
                return replace(incoming, text=self._redact(incoming.text))
            case Deletion():
                return incoming


def _tell(future: asyncio.Future[Stored], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)

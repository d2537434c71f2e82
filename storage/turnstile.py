"""Who writes next where only one may: in order of coming, but what comes in from outside goes first.

Whoever sends us something waits for our acknowledgement, and gives up after seconds; our own work does not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turnstile:
    """Lets one pass at a time."""

    def __init__(self) -> None:
        self._taken = False
        self._first: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def passing(self, *, first: bool) -> AsyncIterator[None]:
        """Wait for the turn, hold it, hand it on."""
        await self._enter(self._first if first else self._others)
        try:
            yield
        finally:
            self._hand_on()

    async def _enter(self, queue: deque[asyncio.Future[None]]) -> None:
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had come just then
                self._hand_on()
            raise

    def _hand_on(self) -> None:
        for queue in (self._first, self._others):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._taken = False

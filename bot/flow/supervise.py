"""Loops that must not end: one that fails is logged, waits a little longer each time, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from storage.errors import DatabaseTrouble

log = structlog.get_logger()

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0


async def forever(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    """Run `loop`, and run it again when it fails."""
    pause = FIRST_PAUSE_S
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await loop()
        except Exception as error:
            if only_the_database(error):
                log.info("loop_waits_for_the_database", loop=name)
                await asyncio.sleep(FIRST_PAUSE_S)
                continue
            log.exception("loop_failed", loop=name)
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE_S:
            pause = FIRST_PAUSE_S
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE_S, pause * 2)


def only_the_database(error: Exception) -> bool:
    """Whether nothing but the database failed, in one task or in several."""
    if isinstance(error, ExceptionGroup):
        return all(only_the_database(one) for one in error.exceptions)
    return isinstance(error, DatabaseTrouble)

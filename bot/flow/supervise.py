"""Loops that must not end: one that fails is logged, waits a little longer each time, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

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
        except Exception:
            log.exception("loop_failed", loop=name)
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE_S:
            pause = FIRST_PAUSE_S
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE_S, pause * 2)

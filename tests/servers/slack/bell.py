"""A bell that wakes whoever waits for something to change."""

from __future__ import annotations

import asyncio


class Bell:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def next_ring(self) -> asyncio.Event:
        """Set at the next ring; take it before you look, so that no ring is missed."""
        return self._event

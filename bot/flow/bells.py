"""Bells: hints that something may have changed.

A spurious, doubled, late or lost one does nothing but cost time.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum


class Topic(StrEnum):
    """Who is to look."""

    DECISIONS = "decisions"
    WORK = "work"
    CARDS = "cards"
    POSTS = "posts"
    RECEIPTS = "receipts"


SOON_S = 0.15


class Bell:
    """One bell with one listener."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake the listener, now or when it next waits."""
        self._event.set()

    async def wait(self, at_most_s: float | None = None) -> bool:
        """Wait for a ring, at most so long; whether it rang."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Bells:
    """All bells of one process."""

    def __init__(self) -> None:
        self._topics = {topic: Bell() for topic in Topic}
        self._turns: dict[str, Bell] = {}

    def of(self, topic: Topic) -> Bell:
        """The bell of one loop."""
        return self._topics[topic]

    def ring(self, *topics: Topic) -> None:
        """Ask these loops to look."""
        for topic in topics:
            self._topics[topic].ring()

    def ring_soon(self, *topics: Topic) -> None:
        """Ask them to look in a moment: whoever acts on the same change first, acts undisturbed.

        Between a steer and its next turn's request, showing what changed would take as long as acting on it.
        """
        asyncio.get_running_loop().call_later(SOON_S, self.ring, *topics)

    def open_turn(self, conversation_id: str) -> Bell:
        """The bell of whoever runs this conversation."""
        bell = self._turns[conversation_id] = Bell()
        return bell

    def close_turn(self, conversation_id: str) -> None:
        """Nobody here runs this conversation any more."""
        self._turns.pop(conversation_id, None)

    def ring_turn(self, conversation_id: str) -> bool:
        """Make whoever runs this conversation probe; whether anybody here does."""
        if bell := self._turns.get(conversation_id):
            bell.ring()
        return bell is not None

    def ring_all_turns(self) -> None:
        """Make every running turn probe."""
        for bell in self._turns.values():
            bell.ring()

"""Bells: hints that something may have changed.

A spurious, doubled, late or lost one does nothing but cost time. `Bells` serve one process. `SharedBells`
ring here at once as well and then, over Redis, in the other processes what concerns these.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:  # a client of Redis is loaded where there is a Redis
    from storage.wake import Wake


class Topic(StrEnum):
    """Who is to look."""

    DECISIONS = "decisions"
    WORK = "work"
    CARDS = "cards"
    POSTS = "posts"
    RECEIPTS = "receipts"
    LOST = "lost"
    """Turns that were given up here: their leases may end."""
    DEAD = "dead"
    """Turns whose lease has ended before their settle record."""


FAR = frozenset({Topic.WORK})
"""What another process may be quicker to do. The rest is done by whoever made it, or found by a poll."""

Kind: TypeAlias = Literal["topic", "turn"]

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
    """All bells of one process, which concern nobody else."""

    def __init__(self) -> None:
        self._topics = {topic: Bell() for topic in Topic}
        self._turns: dict[str, Bell] = {}

    def of(self, topic: Topic) -> Bell:
        """The bell of one loop."""
        return self._topics[topic]

    def reasons(self) -> list[str]:
        """Why rings reach only this process where they should reach others, one line each."""
        return []

    async def listen(self) -> None:
        """Hear for ever what others ring."""
        await asyncio.Event().wait()

    def ring(self, *topics: Topic) -> None:
        """Ask these loops to look."""
        self.ring_here(*topics)

    def ring_here(self, *topics: Topic) -> None:
        """Ask these loops of this process to look, for what no other process could do."""
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
        """Make every turn that runs here probe."""
        for bell in self._turns.values():
            bell.ring()


class SharedBells(Bells):
    """The bells of one process among others."""

    def __init__(self, wake: Wake) -> None:
        super().__init__()
        self._wake = wake

    def reasons(self) -> list[str]:
        """Why Redis cannot be used now; until it can, the others poll."""
        return [self._wake.reason] if self._wake.reason else []

    async def listen(self) -> None:
        """Hear for ever what others ring; look at everything once whenever that begins (again)."""
        await self._wake.run(self._hear, self._ring_everything)

    def ring(self, *topics: Topic) -> None:
        """Ask these loops to look, and those of the others for what they may do as well."""
        super().ring(*topics)
        for topic in FAR.intersection(topics):
            self._ring_far("topic", topic)

    def ring_turn(self, conversation_id: str) -> bool:
        """Make whoever runs this conversation probe; whether anybody here does."""
        is_here = super().ring_turn(conversation_id)
        if not is_here:
            self._ring_far("turn", conversation_id)
        return is_here

    def _ring_far(self, kind: Kind, name: str) -> None:
        self._wake.ring(kind, name)

    def _hear(self, kind: str, name: str) -> None:
        """What another process rang, perhaps one of another version."""
        if kind == "turn":
            super().ring_turn(name)
        elif kind == "topic" and name in set(Topic):
            self.ring_here(Topic(name))

    def _ring_everything(self) -> None:
        self.ring_here(*Topic)
        self.ring_all_turns()

"""What a process does when no bell rings: it looks at everything, in one query, and rings for what is due.

It also sees which processes are not heard any more, and ends their leases before these run out. One that was
not heard twice is gone; after a trouble of the database everybody is given time to be heard again first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import structlog

from bot.flow.bells import Bells, Topic
from storage import liveness
from storage.agenda import Agenda
from storage.engine import Database
from storage.errors import DatabaseAway
from storage.lookout import Lookout

log = structlog.get_logger()

SECOND_LOOK_S = 0.25
BESIDE_OTHERS_S = 0.5
"""Looked so often while others work: one of them may die."""

AWAY_S = 0.25
SETTLED_S = 1.5
"""Nobody is called gone before our own connection has stood so long."""


class LookAround:
    """Looks for ever, about every `poll_s`."""

    def __init__(self, lookout: Lookout, database: Database, bells: Bells, poll_s: float) -> None:
        self._lookout = lookout
        self._database = database
        self._bells = bells
        self._poll_s = poll_s
        self._suspects: frozenset[str] = frozenset()
        self._is_away = False
        self.seen: Agenda | None = None

    async def run(self) -> None:
        """Look for ever."""
        while True:
            pause = await self.look()
            await asyncio.sleep(pause * random.uniform(0.95, 1.1))

    async def look(self) -> float:
        """Look once, and ring; returns the seconds until the next look."""
        try:
            seen = self.seen = await self._lookout.look()
        except DatabaseAway as error:
            if not self._is_away:
                log.warning("database_away", error=str(error))
            self._is_away, self._suspects = True, frozenset()
            return AWAY_S
        if self._is_away:
            log.warning("database_back")
            self._is_away = False
            self._bells.ring_here(*Topic)
        self._ring(seen)
        if await self._end_leases_of_the_gone(seen):
            return SECOND_LOOK_S
        return min(self._poll_s, BESIDE_OTHERS_S) if seen.leases_elsewhere else self._poll_s

    def _ring(self, seen: Agenda) -> None:
        """Ring for what is due, when it is."""
        due: Mapping[Topic, float | None] = {
            Topic.DECISIONS: seen.decisions,
            Topic.WORK: seen.work,
            Topic.CARDS: seen.cards,
            Topic.POSTS: seen.posts,
            Topic.RECEIPTS: seen.receipts,
            Topic.DEAD: 0.0 if seen.dead_turns else None,
        }
        for topic, seconds in due.items():
            if seconds is not None and seconds <= 0:
                self._bells.ring_here(topic)
            elif seconds is not None and seconds < self._poll_s:
                asyncio.get_running_loop().call_later(seconds, self._bells.ring_here, topic)

    async def _end_leases_of_the_gone(self, seen: Agenda) -> bool:
        """End the leases of whoever was silent twice; whether somebody is under suspicion now."""
        silent = frozenset(seen.silent_owners) if self._lookout.stood_for_s() >= SETTLED_S else frozenset()
        for owner in silent & self._suspects:
            if await self._database.write(liveness.end_leases_of, owner):
                log.warning("process_gone", process=owner)
                self._bells.ring_here(*Topic)
        self._suspects = silent - self._suspects
        return bool(self._suspects)

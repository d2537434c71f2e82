"""Decides what stored messages do: at once when the author is known.

Else the look-up is tried for 30 s, and then the author has the least right.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import Permanent, Rejected, Temporary
from bot.flow.bells import Bells, Topic
from bot.ports import Chat
from core.arrivals import Author, role_of
from core.policy import Effect, Policy
from storage import decisions, inbox
from storage.engine import Database

log = structlog.get_logger()

LOOK_UP_FOR_S = 30.0
LOOK_UP_EVERY_S = 1.0
UNKNOWN_AUTHOR = "I could not look up who you are, so I did not act on this. Please try again in a minute."


class Decider:
    """Takes undecided messages in the order in which they came; one slow look-up holds up nobody else."""

    def __init__(
        self,
        database: Database,
        bells: Bells,
        chat: Chat,
        *,
        policy: Policy,
        responders: frozenset[str],
    ) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._policy = policy
        self._responders = responders
        self._under_way: dict[int, tuple[Row[Any], asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Decide for ever."""
        async with asyncio.TaskGroup() as deciding:
            while True:
                for row in await self._database.glance(inbox.undecided):
                    if row.seq not in self._under_way:
                        work = self._decide(row, self._said_before(row))
                        task = deciding.create_task(work, name=f"decide {row.seq}")
                        self._under_way[row.seq] = row, task
                        task.add_done_callback(partial(self._done, row.seq))
                await self._bells.of(Topic.DECISIONS).wait()

    def _done(self, seq: int, _: asyncio.Task[None]) -> None:
        self._under_way.pop(seq, None)

    def _said_before(self, row: Row[Any]) -> set[asyncio.Task[None]]:
        """What the same person wrote in the same thread just before: it is decided first."""
        return {
            task
            for other, task in self._under_way.values()
            if (other.conversation_id, other.author_id) == (row.conversation_id, row.author_id)
        }

    async def _decide(self, row: Row[Any], said_before: set[asyncio.Task[None]]) -> None:
        author = await self._author(row)
        if said_before:
            await asyncio.wait(said_before)
        known = author or Author(row.author_id, row.author_id, is_external=True)
        role = role_of(known, initiator=row.initiator, responders=self._responders)
        told = None if author is not None else UNKNOWN_AUTHOR
        decided = await self._database.write(
            decisions.decide, row.seq, self._policy, role=role, author_name=known.name, told=told
        )
        if decided.effect is None:
            return
        log.info("decided", conversation=decided.conversation_id, effect=decided.effect, role=role)
        if decided.effect in (Effect.STEER, Effect.STOP) and self._bells.ring_turn(decided.conversation_id):
            self._bells.ring_soon(Topic.RECEIPTS, Topic.POSTS, Topic.CARDS)  # its end rings for work
        else:
            self._bells.ring(Topic.RECEIPTS, Topic.POSTS, Topic.CARDS, Topic.WORK)

    async def _author(self, row: Row[Any]) -> Author | None:
        """The platform's record of the writer; None when it could not be had in time."""
        if row.author_is_bot:
            return Author(row.author_id, row.author_id, is_bot=True)
        deadline = asyncio.get_running_loop().time() + LOOK_UP_FOR_S
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._chat.author(row.workspace, row.author_id)
            except (Temporary, Rejected, TimeoutError) as error:
                wait = max(LOOK_UP_EVERY_S, getattr(error, "retry_after_s", None) or 0.0)
                if asyncio.get_running_loop().time() + wait >= deadline:
                    log.warning("author_unknown", author=row.author_id, error=str(error))
                    return None
                await asyncio.sleep(wait)
            except Permanent as error:
                log.warning("author_unknown", author=row.author_id, error=str(error))
                return None

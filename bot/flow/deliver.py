"""Delivers what we have to say: answers, notes, charts and private words.

Each is said once, in order within a thread.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import OutcomeUnknown, Permanent, Rejected, Temporary
from bot.flow.bells import Bells, Topic
from bot.ports import Chat, Post
from storage import outbox
from storage.conversations import thread_of
from storage.engine import Database

log = structlog.get_logger()

CLIENT_LIMIT_S = 10.0
LONGEST_PAUSE_S = 60.0
MOST_TRIES = {"private": 20, "chart": 8}
"""What is worth less than the trouble is given up with a record; answers and notes are tried for ever."""


class Deliverer:
    """Takes messages from the outbox to the platform."""

    def __init__(self, database: Database, bells: Bells, chat: Chat) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._threads: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Deliver for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                for row in await self._database.read(outbox.due):
                    if row.conversation_id not in self._threads:
                        self._begin(group, row.conversation_id)
                await self._bells.of(Topic.POSTS).wait(1.0)

    async def settle_down(self, timeout_s: float) -> None:
        """Before the process ends: give what is due its chance, for so long at most."""
        async with asyncio.timeout(timeout_s):
            # The database may be served by other processes too: there is nothing here to be woken by.
            while await self._database.read(outbox.due) or self._threads:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def _begin(self, group: asyncio.TaskGroup, conversation_id: str) -> None:
        task = group.create_task(self._deliver_thread(conversation_id), name=f"deliver {conversation_id}")
        self._threads[conversation_id] = task
        task.add_done_callback(lambda _: self._threads.pop(conversation_id, None))

    async def _deliver_thread(self, conversation_id: str) -> None:
        """One message after the other; a failure holds up the thread's later ones until its next try."""
        while row := await self._database.read(outbox.first_open, conversation_id):
            try:
                await self._deliver(row)
            except Exception as error:  # noqa: BLE001  sorted below by what must be done
                await self._failed(row, error)
                return

    async def _deliver(self, row: Row[Any]) -> None:
        thread = thread_of(row)
        if row.kind == "private":
            await self._chat.tell_privately(thread, row.to_user, row.text)
            await self._database.write(outbox.part_done, row.id, 1, 1)
            return
        parts = self._chat.split(row.text) if row.picture is None else [row.text]
        done = row.parts_done
        if row.posting_since is not None:
            done = await self._look(row, done)
        for number in range(done, len(parts)):
            await self._database.write(outbox.begin_post, row.id)
            await self._chat.post(
                thread,
                Post(
                    post_id=row.id,
                    kind=row.kind,
                    text=parts[number],
                    turn_id=row.turn_id,
                    final_event_id=row.final_event_id,
                    part=number + 1,
                    parts=len(parts),
                    chart=row.picture,
                ),
            )
            await self._database.write(outbox.part_done, row.id, number + 1, len(parts))
        if done >= len(parts):
            await self._database.write(outbox.part_done, row.id, len(parts), len(parts))

    async def _look(self, row: Row[Any], done: int) -> int:
        """After a post whose answer was lost: how many parts the thread really has. Doubles are deleted."""
        left = row.posting_since + CLIENT_LIMIT_S - row.now
        found = await self._chat.find(thread_of(row), row.posting_since - CLIENT_LIMIT_S)
        ours = [one for one in found if one.payload.get("post_id") == row.id]
        seen: set[int] = set()
        for one in ours:
            part = int(one.payload.get("part") or 1)
            if part in seen:
                await self._chat.delete(thread_of(row), one.ref)
            seen.add(part)
        if seen and max(seen) > done:
            return max(seen)
        if left > 0:
            raise Temporary("the answer to a post was lost; it may still arrive", retry_after_s=left)
        return done

    async def _failed(self, row: Row[Any], error: Exception) -> None:
        pause = min(LONGEST_PAUSE_S, 0.5 * 2.0 ** min(row.tries, 10)) * (0.75 + random.random() / 2)
        refused = isinstance(error, Permanent) and not isinstance(error, Rejected)
        if refused or row.tries >= MOST_TRIES.get(row.kind, 10**9):
            log.warning("post_given_up", post=row.id, kind=row.kind, turn=row.turn_id, error=str(error))
            await self._database.write(outbox.give_up, row.id, str(error))
            self._bells.ring(Topic.POSTS)
            return
        nothing_sent = isinstance(error, Temporary | Rejected)
        if not nothing_sent:
            log.error("post_failed", post=row.id, kind=row.kind, exc_info=error)
        if isinstance(error, Temporary) and error.retry_after_s is not None:
            pause = error.retry_after_s
        sent_perhaps = isinstance(error, OutcomeUnknown) or not nothing_sent
        keep_mark = sent_perhaps or (row.posting_since is not None)
        await self._database.write(outbox.try_later, row.id, pause, not_sent=not keep_mark)

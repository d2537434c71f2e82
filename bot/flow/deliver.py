"""Delivers what we have to say: answers, notes, charts and private words.

Each is said once, in order within a thread.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import OutcomeUnknown, Permanent, Rejected, Temporary, Unreachable
from bot.flow.bells import Bells, Topic
from bot.flow.claiming import ClaimLapsed, Claims
from bot.flow.pauses import MEMORY_S, Outage, pause_s
from bot.measures import Measures
from bot.ports import Chat, Post
from storage import outbox
from storage.conversations import thread_of
from storage.engine import Database
from storage.errors import DatabaseTrouble

log = structlog.get_logger()

CLIENT_LIMIT_S = 10.0
MOST_TRIES = {"private": 20, "chart": 8, outbox.UNDELIVERED: 20}
"""What is worth less than the trouble is given up with a record; answers and notes are tried for ever.

While the platform is away or rejects us nothing is given up.
"""

ONLY_HERE = frozenset({"private", "chart", outbox.UNDELIVERED})
"""What is not sent elsewhere when its thread takes it no more."""

ELSEWHERE = "I could not post this where you asked me ({said}), so it comes to you directly:\n\n{text}"


class Deliverer:
    """Takes messages from the outbox to the platform."""

    def __init__(
        self, database: Database, bells: Bells, chat: Chat, claims: Claims, measures: Measures
    ) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._claims = claims
        self._measures = measures
        self._threads: dict[str, asyncio.Task[None]] = {}
        self._outage = Outage()

    async def run(self) -> None:
        """Deliver for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                due = [row.conversation_id for row in await self._due()]
                granted = await self._claims.take(map(outbox.thing, due))
                for conversation_id in due:
                    if outbox.thing(conversation_id) in granted and conversation_id not in self._threads:
                        self._begin(group, conversation_id)
                await self._bells.of(Topic.POSTS).wait()

    async def settle_down(self, timeout_s: float) -> None:
        """Before the process ends: give what is due its chance, for so long at most."""
        async with asyncio.timeout(timeout_s):
            # The database may be served by other processes too: there is nothing here to be woken by.
            while await self._due() or self._threads:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _due(self) -> list[Row[Any]]:
        return await self._database.glance(outbox.due, self._claims.owner)

    def _begin(self, group: asyncio.TaskGroup, conversation_id: str) -> None:
        task = group.create_task(self._deliver_thread(conversation_id), name=f"deliver {conversation_id}")
        self._threads[conversation_id] = task
        task.add_done_callback(partial(self._done, conversation_id))

    def _done(self, conversation_id: str, _: asyncio.Task[None]) -> None:
        self._threads.pop(conversation_id, None)
        self._claims.give_back(outbox.thing(conversation_id))

    async def _deliver_thread(self, conversation_id: str) -> None:
        """One message after the other; a failure holds up the thread's later ones until its next try."""
        while row := await self._database.glance(outbox.first_open, conversation_id):
            try:
                await self._deliver(row)
                if self._outage.is_over():
                    await self._database.write(outbox.due_again, MEMORY_S)
                    self._bells.ring(Topic.POSTS)
            except (DatabaseTrouble, ClaimLapsed) as error:  # it is still due, here or elsewhere
                log.warning("post_left", post=row.id, error=f"{type(error).__name__}: {error}")
                return
            except Exception as error:  # noqa: BLE001  sorted below by what must be done
                self._outage.met(error)
                await self._failed(row, error)
                return

    async def _deliver(self, row: Row[Any]) -> None:
        thread = thread_of(row)
        if row.kind == "private":
            self._claims.require(outbox.thing(row.conversation_id))
            await self._chat.tell_privately(thread, row.to_user, row.text)
            await self._database.write(outbox.part_done, row.id, 1, 1)
            return
        parts = self._chat.split(row.text) if row.picture is None else [row.text]
        done = row.parts_done
        if row.posting_since is not None:
            done = await self._look(row, done)
        sending = _Sending(self._database, self._claims, row, done)
        for number in range(done, len(parts)):
            post = Post(
                post_id=row.id,
                kind=row.kind,
                text=parts[number],
                turn_id=row.turn_id,
                final_event_id=row.final_event_id,
                part=number + 1,
                parts=len(parts),
                chart=row.picture,
            )
            if row.kind == outbox.UNDELIVERED:  # not looked for after a lost answer: we may not read there
                await self._chat.tell_directly(thread, row.to_user, post, sending.begin)
            else:
                await self._chat.post(thread, post, sending.begin)
            await self._database.write(outbox.part_done, row.id, number + 1, len(parts))
            sending.part_done()
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
        """What becomes of a message that the platform did not take."""
        if self._is_final(row, error):
            await self._give_up(row, error)
            return
        pause, known = pause_s(row.tries, error), isinstance(error, Temporary | Rejected)
        if not known:
            log.error("post_failed", post=row.id, kind=row.kind, exc_info=error)
        sent_perhaps = isinstance(error, OutcomeUnknown) or not known
        keep_mark = sent_perhaps or (row.posting_since is not None)
        await self._database.write(outbox.try_later, row.id, pause, not_sent=not keep_mark)

    def _is_final(self, row: Row[Any], error: Exception) -> bool:
        """Whether trying again would be in vain, or is not worth the trouble any more."""
        if isinstance(error, Rejected | Unreachable):
            return False
        return isinstance(error, Permanent) or row.tries >= MOST_TRIES.get(row.kind, 10**9)

    async def _give_up(self, row: Row[Any], error: Exception) -> None:
        """With a record; what somebody waits for goes to them directly."""
        log.warning("post_given_up", post=row.id, kind=row.kind, turn=row.turn_id, error=str(error))
        said = getattr(error, "code", "") or "no answer"
        instead = None if row.kind in ONLY_HERE else ELSEWHERE.format(said=said, text=row.text)
        await self._database.write(outbox.give_up, row.id, str(error), instead)
        self._measures.given_up(row.kind)
        self._bells.ring(Topic.POSTS)


class _Sending:
    """What is put on record right before each part of a message is sent, once its turn has come.

    It may have waited long: by now another process may have sent it.
    """

    def __init__(self, database: Database, claims: Claims, row: Row[Any], parts_done: int) -> None:
        self._database = database
        self._claims = claims
        self._row = row
        self._known_done = row.parts_done
        self._parts_done = parts_done
        self._since: float | None = row.posting_since

    async def begin(self) -> None:
        """Raise ClaimLapsed when this process may not send it any more."""
        thing = outbox.thing(self._row.conversation_id)
        self._claims.require(thing)
        self._since = await self._database.write(
            outbox.begin_post, self._row.id, self._known_done, self._since
        )
        if self._since is None:
            raise ClaimLapsed(thing)
        self._claims.require(thing)

    def part_done(self) -> None:
        """The platform has taken it, and the records say so."""
        self._parts_done += 1
        self._known_done, self._since = self._parts_done, None

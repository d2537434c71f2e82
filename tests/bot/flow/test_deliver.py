"""What waits for its turn to be sent is sent only by whoever may still send it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bot.flow.bells import Bells
from bot.flow.claiming import Claims
from bot.flow.deliver import Deliverer
from bot.measures import Measures
from bot.ports import AboutToSend, Found, Post
from core.arrivals import Thread
from storage import outbox
from storage import tables as t
from storage.engine import Database
from tests.storage.world import World, booking


class Platform:
    """A platform whose rate budget lets a post wait."""

    def __init__(self) -> None:
        self.waits, self.go = asyncio.Event(), asyncio.Event()
        self.sent: list[str] = []

    async def post(self, thread: Thread, post: Post, about_to_send: AboutToSend) -> str:
        self.waits.set()
        await self.go.wait()
        await about_to_send()
        self.sent.append(post.text)
        return "ref"

    async def find(self, thread: Thread, since: float) -> list[Found]:
        return []

    def split(self, text: str) -> list[str]:
        return [text]


@asynccontextmanager
async def delivering(database: Database, platform: Platform) -> AsyncIterator[World]:
    """An answer is due and waits for its turn."""
    world = World(database)
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    claims = Claims(database, "p1")
    deliverer = Deliverer(database, Bells(), platform, claims, Measures())  # type: ignore[arg-type]
    task = asyncio.create_task(deliverer.run())
    await platform.waits.wait()
    try:
        yield world
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def settled(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await holds():
            await asyncio.sleep(0.01)


async def test_it_is_sent_and_marked_when_its_turn_comes_and_not_before(shared: Database) -> None:
    platform = Platform()
    async with delivering(shared, platform) as world:
        assert (await world.one(t.outbox)).posting_since is None
        platform.go.set()

        async def is_done() -> bool:
            return (await world.one(t.outbox)).done_at is not None

        await settled(is_done)
        assert len(platform.sent) == 1


async def test_it_is_not_sent_by_who_lost_the_claim_while_it_waited(shared: Database) -> None:
    platform = Platform()
    async with delivering(shared, platform) as world:
        row = await world.one(t.outbox)
        await shared.write(outbox.begin_post, row.id, 0, None)  # another process, which
        await shared.write(outbox.part_done, row.id, 1, 1)  # has sent it meanwhile
        platform.go.set()
        await asyncio.sleep(0.2)
        assert platform.sent == []

"""A bell is a hint: it wakes its listener once, and means nothing.

One contract for the bells of one process and for those that also ring in others, with Redis and without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from bot.flow.bells import Bell, Bells, SharedBells, Topic
from storage.redis_address import RedisAddress
from storage.wake import Wake
from tests.servers import valkey

NOBODY_THERE = "redis://127.0.0.1:1/0"


async def has_rung(bell: Bell, within_s: float = 0.01) -> bool:
    return await bell.wait(within_s)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


async def heed(bells: Bells) -> None:
    """Let all that has rung be looked at."""
    for topic in Topic:
        await bells.of(topic).wait(0.0)


@asynccontextmanager
async def listening(url: str, *, connected: bool = True) -> AsyncIterator[SharedBells]:
    """The bells of one more process; they have rung for the connection, and that has been heeded."""
    bells = SharedBells(Wake(RedisAddress(url)))
    task = asyncio.create_task(bells.listen())
    try:
        if connected:
            await until(lambda: not bells.reasons())
            await heed(bells)
        yield bells
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(params=["in one process", "over Redis", "while Redis is away"])
async def bells(request: pytest.FixtureRequest) -> AsyncIterator[Bells]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "in one process":
                yield Bells()
            case "over Redis":
                yield await stack.enter_async_context(listening(valkey.shared().fresh_url()))
            case _:
                yield await stack.enter_async_context(listening(NOBODY_THERE, connected=False))


class Fleet:
    """Two processes on one Redis."""

    def __init__(self, here: SharedBells, there: SharedBells) -> None:
        self.here, self.there = here, there

    async def settled(self) -> None:
        """Whatever was rung before has arrived: rings of one process keep their order."""
        for one, other in ((self.here, self.there), (self.there, self.here)):
            mark = other.open_turn("mark")
            one.ring_turn("mark")
            assert await mark.wait(5)
            other.close_turn("mark")


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    url = valkey.shared().fresh_url()
    async with listening(url) as here, listening(url) as there:
        yield Fleet(here, there)


# --- one bell -----------------------------------------------------------------------------------------


async def test_a_ring_wakes_whoever_waits() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    bell.ring()
    assert await waiting is True


async def test_a_ring_before_the_wait_is_not_lost() -> None:
    bell = Bell()
    bell.ring()
    assert await bell.wait(0.0) is True


async def test_many_rings_wake_once() -> None:
    bell = Bell()
    for _ in range(3):
        bell.ring()
    assert await bell.wait(0.01) is True
    assert await bell.wait(0.01) is False


async def test_without_a_ring_the_wait_ends_in_time() -> None:
    assert await Bell().wait(0.01) is False


async def test_a_wait_that_is_cancelled_takes_no_ring_with_it() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    bell.ring()
    assert await bell.wait(0.01) is True


# --- all bells of a process ---------------------------------------------------------------------------


async def test_a_topic_wakes_its_own_loop_only_and_at_once(bells: Bells) -> None:
    bells.ring(Topic.WORK, Topic.CARDS)
    assert await has_rung(bells.of(Topic.WORK), 0.0)
    assert await has_rung(bells.of(Topic.CARDS), 0.0)
    assert not await has_rung(bells.of(Topic.POSTS))


async def test_a_turn_is_rung_by_its_conversation_at_once(bells: Bells) -> None:
    ours, other = bells.open_turn("a"), bells.open_turn("b")
    assert bells.ring_turn("a")
    assert await has_rung(ours, 0.0)
    assert not await has_rung(other)


async def test_all_turns_can_be_rung_at_once(bells: Bells) -> None:
    turns = [bells.open_turn("a"), bells.open_turn("b")]
    bells.ring_all_turns()
    assert [await bell.wait(0.01) for bell in turns] == [True, True]


async def test_ringing_for_a_turn_that_nobody_runs_here_does_nothing_here(bells: Bells) -> None:
    bell = bells.open_turn("a")
    bells.close_turn("a")
    bells.close_turn("a")
    assert not bells.ring_turn("a")
    assert not bells.ring_turn("never")
    assert not await has_rung(bell, 0.05)


async def test_a_ring_may_come_in_a_moment(bells: Bells) -> None:
    bells.ring_soon(Topic.CARDS, Topic.POSTS)
    assert not await has_rung(bells.of(Topic.CARDS))
    assert await has_rung(bells.of(Topic.CARDS), 1)
    assert await has_rung(bells.of(Topic.POSTS))


async def test_what_was_rung_here_is_looked_at_once(bells: Bells) -> None:
    """Hearing oneself would make every look a double one."""
    bells.ring(Topic.WORK)
    assert await has_rung(bells.of(Topic.WORK))
    assert not await has_rung(bells.of(Topic.WORK), 0.1)


# --- the bells of other processes ---------------------------------------------------------------------


async def test_work_is_rung_for_in_every_process(fleet: Fleet) -> None:
    fleet.here.ring(Topic.WORK)
    assert await has_rung(fleet.there.of(Topic.WORK), 5)


async def test_what_only_its_maker_needs_to_look_at_stays_in_its_process(fleet: Fleet) -> None:
    fleet.here.ring(*(topic for topic in Topic if topic is not Topic.WORK))
    fleet.here.ring_here(Topic.WORK)
    await fleet.settled()
    assert [topic for topic in Topic if await has_rung(fleet.there.of(topic), 0.0)] == []


async def test_a_turn_that_another_process_runs_is_rung_there(fleet: Fleet) -> None:
    turn, other = fleet.there.open_turn("a"), fleet.there.open_turn("b")
    assert not fleet.here.ring_turn("a")
    assert await has_rung(turn, 5)
    assert not await has_rung(other)


async def test_a_turn_that_runs_here_is_rung_here_only(fleet: Fleet) -> None:
    fleet.here.open_turn("a")
    turn = fleet.there.open_turn("a")
    assert fleet.here.ring_turn("a")
    await fleet.settled()
    assert not await has_rung(turn, 0.0)


async def test_databases_of_one_redis_do_not_hear_each_other(fleet: Fleet) -> None:
    async with listening(valkey.shared().fresh_url()) as stranger:
        fleet.here.ring(Topic.WORK)
        assert await has_rung(fleet.there.of(Topic.WORK), 5)
        assert not await has_rung(stranger.of(Topic.WORK), 0.05)


async def test_whoever_begins_to_listen_looks_at_everything_once() -> None:
    """Nobody knows what was rung before."""
    bells = SharedBells(Wake(RedisAddress(valkey.shared().fresh_url())))
    turn = bells.open_turn("a")
    task = asyncio.create_task(bells.listen())
    assert [await has_rung(bells.of(topic), 5) for topic in Topic] == [True] * len(Topic)
    assert await has_rung(turn)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    "message",
    [
        "someone topic horoscopes",
        "someone verdict work",
        "someone topic",
        "topic",
        "",
        "someone turn unknown",
        "someone topic " + "work" * 10_000,
        b"\xff\xfe\x00",
        b"\xff topic \xff",
        '{"by": "someone", "topic": "work"}',
        "[" * 100_000,
    ],
)
async def test_a_message_that_is_not_understood_does_nothing(message: str | bytes) -> None:
    url = valkey.shared().fresh_url()
    channel = f"watchkeeper:{RedisAddress(url).database}:bells"
    async with listening(url) as bells:
        turn = bells.open_turn("a")
        client = RedisAddress(url).client()
        assert await client.publish(channel, message) == 1
        await client.publish(channel, "someone turn a")
        await client.aclose()
        assert await has_rung(turn, 5), "it hears no more"
        assert [topic for topic in Topic if await has_rung(bells.of(topic), 0.0)] == []
        assert not bells.reasons()

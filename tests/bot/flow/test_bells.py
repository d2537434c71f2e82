"""A bell is a hint: it wakes its listener once, and means nothing."""

from __future__ import annotations

import asyncio

import pytest

from bot.flow.bells import Bell, Bells, Topic


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


async def test_a_topic_wakes_its_own_loop_only() -> None:
    bells = Bells()
    bells.ring(Topic.WORK, Topic.CARDS)
    assert await bells.of(Topic.WORK).wait(0.01)
    assert await bells.of(Topic.CARDS).wait(0.01)
    assert not await bells.of(Topic.POSTS).wait(0.01)


async def test_a_turn_is_rung_by_its_conversation() -> None:
    bells = Bells()
    ours, other = bells.open_turn("a"), bells.open_turn("b")
    assert bells.ring_turn("a")
    assert await ours.wait(0.01)
    assert not await other.wait(0.01)


async def test_all_turns_can_be_rung_at_once() -> None:
    bells = Bells()
    turns = [bells.open_turn("a"), bells.open_turn("b")]
    bells.ring_all_turns()
    assert [await bell.wait(0.01) for bell in turns] == [True, True]


async def test_ringing_for_a_turn_that_nobody_runs_here_does_nothing() -> None:
    bells = Bells()
    bell = bells.open_turn("a")
    bells.close_turn("a")
    bells.close_turn("a")
    assert not bells.ring_turn("a")
    assert not bells.ring_turn("never")
    assert not await bell.wait(0.01)


async def test_a_ring_may_come_in_a_moment() -> None:
    bells = Bells()
    bells.ring_soon(Topic.CARDS, Topic.POSTS)
    assert not await bells.of(Topic.CARDS).wait(0.01)
    assert await bells.of(Topic.CARDS).wait(1)
    assert await bells.of(Topic.POSTS).wait(0.01)

"""The rate budget: never too much, the urgent first, and never before Slack's word."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

import pytest

from bot.slack.budget import Budget, Lane, Pace, Priority


async def given_way(*waiting: Awaitable[None]) -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_no_window_holds_more_calls_than_allowed() -> None:
    lane, times = Lane(8, window_s=0.2), list[float]()
    for _ in range(20):
        await lane.turn(Priority.URGENT)
        times.append(time.monotonic())
    assert all(later - earlier >= 0.2 for earlier, later in zip(times, times[8:], strict=False))


async def test_a_quarter_is_kept_for_the_urgent() -> None:
    lane, went = Lane(8, window_s=60), list[str]()

    async def go(name: str, priority: Priority) -> None:
        await lane.turn(priority)
        went.append(name)

    posts = [asyncio.create_task(go("post", Priority.POST)) for _ in range(9)]
    await given_way()
    urgent = asyncio.create_task(go("urgent", Priority.URGENT))
    await given_way()
    assert went == ["post"] * 6 + ["urgent"]
    assert urgent.done()
    for task in posts:
        task.cancel()
    await asyncio.gather(*posts, return_exceptions=True)


async def test_progress_is_spread_over_the_minute() -> None:
    lane = Lane(48, window_s=0.6)
    started = time.monotonic()
    for _ in range(12):
        await lane.turn(Priority.PROGRESS)
    assert time.monotonic() - started >= 0.6 * 8 / 48


async def test_the_most_urgent_goes_first_and_equals_in_order() -> None:
    lane, went = Lane(100, window_s=60), list[str]()
    lane.rest(0.05)

    async def go(name: str, priority: Priority) -> None:
        await lane.turn(priority)
        went.append(name)

    async with asyncio.TaskGroup() as group:
        for name, priority in (("p1", 2), ("a1", 1), ("a2", 1), ("u1", 0), ("p2", 2)):
            group.create_task(go(name, Priority(priority)))
    assert went == ["u1", "a1", "a2", "p1", "p2"]


async def test_a_method_rests_as_long_as_slack_said() -> None:
    budget, started = Budget(), time.monotonic()
    budget.rest("chat.update", 0.15)
    await budget.turn("reactions.add", Priority.POST)
    assert time.monotonic() - started < 0.1
    await budget.turn("chat.update", Priority.URGENT)
    assert time.monotonic() - started >= 0.15


async def test_who_gives_up_waiting_holds_nobody_up() -> None:
    lane = Lane(100, window_s=60)
    lane.rest(0.1)
    first = asyncio.create_task(lane.turn(Priority.URGENT))
    second = asyncio.create_task(lane.turn(Priority.POST))
    await given_way()
    first.cancel()
    async with asyncio.timeout(1):
        await second
    assert first.cancelled()


async def test_posts_into_one_channel_keep_their_distance_and_others_do_not_wait() -> None:
    budget, started = Budget(), time.monotonic()
    for channel in ("C1", "C1", "C2"):
        await budget.turn("chat.postMessage", Priority.POST, channel)
    assert time.monotonic() - started < 0.2
    third = asyncio.create_task(budget.turn("chat.postMessage", Priority.POST, "C1"))
    await asyncio.sleep(0.3)
    assert not third.done()
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)


@pytest.mark.parametrize("burst", [1, 3])
def test_a_pace_lets_a_burst_go_and_then_one_at_a_time(burst: int) -> None:
    pace, now = Pace(2.0, burst), 100.0
    for _ in range(burst):
        assert pace.ready_at() <= now
        pace.take(now)
    assert pace.ready_at() == now + 2.0

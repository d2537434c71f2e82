"""Where only one may write, each has its turn, and what comes in from outside goes first."""

from __future__ import annotations

import asyncio

import pytest

from storage.turnstile import Turnstile


async def waiting(turnstile: Turnstile, log: list[str], name: str) -> asyncio.Task[None]:
    async def passes() -> None:
        async with turnstile.passing(first=name.startswith("first")):
            log.append(name)
            await asyncio.sleep(0)

    task = asyncio.create_task(passes())
    await asyncio.sleep(0)
    return task


async def test_one_passes_at_a_time_in_order_of_coming_but_the_first_lane_goes_first() -> None:
    turnstile, log = Turnstile(), list[str]()
    async with turnstile.passing(first=False):
        tasks = [await waiting(turnstile, log, name) for name in ("a", "b", "first a", "first b")]
        assert log == []
    await asyncio.gather(*tasks)
    assert log == ["first a", "first b", "a", "b"]


@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "just when its turn came"])
async def test_one_that_is_cancelled_holds_up_nobody(late: bool) -> None:
    turnstile, log = Turnstile(), list[str]()
    async with turnstile.passing(first=False):
        cancelled, next_one = [await waiting(turnstile, log, name) for name in ("cancelled", "next")]
        if not late:
            cancelled.cancel()
            await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    async with asyncio.timeout(1):
        await next_one
    assert log == ["next"]


async def test_a_failure_inside_hands_the_turn_on() -> None:
    turnstile, log = Turnstile(), list[str]()
    with pytest.raises(ValueError, match="no"):
        async with turnstile.passing(first=False):
            raise ValueError("no")
    await (await waiting(turnstile, log, "next"))
    assert log == ["next"]

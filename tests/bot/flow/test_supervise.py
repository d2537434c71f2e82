"""A loop that fails is run again; one that is cancelled ends."""

from __future__ import annotations

import asyncio

import pytest

from bot.flow import supervise
from bot.flow.supervise import forever


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "FIRST_PAUSE_S", 0.01)


class Loop:
    """Fails or returns a few times, then runs for ever."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.begun: list[float] = []
        self.runs = asyncio.Event()

    async def __call__(self) -> None:
        self.begun.append(asyncio.get_running_loop().time())
        if self.ends:
            end = self.ends.pop(0)
            if end is not None:
                raise end
            return
        self.runs.set()
        await asyncio.Event().wait()


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("end_of_loop", [ValueError("no"), TimeoutError(), None])
async def test_a_loop_that_ends_is_run_again(end_of_loop: Exception | None) -> None:
    loop = Loop(end_of_loop)
    task = asyncio.create_task(forever("loop", loop))
    async with asyncio.timeout(5):
        await loop.runs.wait()
    assert len(loop.begun) == 2
    await end(task)


async def test_the_pauses_grow_while_it_keeps_failing() -> None:
    loop = Loop(*(ValueError(number) for number in range(4)))
    task = asyncio.create_task(forever("loop", loop))
    async with asyncio.timeout(5):
        await loop.runs.wait()
    pauses = [later - earlier for earlier, later in zip(loop.begun, loop.begun[1:], strict=False)]
    assert pauses[0] >= 0.01
    assert pauses[3] >= 0.08
    await end(task)


async def test_a_loop_that_is_cancelled_ends_at_once() -> None:
    loop = Loop()
    task = asyncio.create_task(forever("loop", loop))
    await loop.runs.wait()
    await end(task)
    assert len(loop.begun) == 1

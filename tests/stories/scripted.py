"""A scripted analysis whose every point can be met: each stream event, and each start and end of a held call.

The model answers by what the request holds, so that any turn, also a resumed one, goes on where the last one
was: first two reading calls, then a reading one beside one with side effects, then the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.anthropic.blocks import Block, call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.stories.room import Room

ANSWER = "The deploy at 14:05 removed an index."


@dataclass
class Script:
    """One run of the analysis. `at_point` is called before each point with its number and name."""

    room: Room
    at_point: Callable[[int, str], Awaitable[None]]
    points: list[str] = field(default_factory=list)
    calls_done: set[str] = field(default_factory=set)
    thread: str = ""
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def install(self) -> None:
        """Make the model of the room play this script."""
        self.room.model.reply_with(self._answer)
        self.room.model.on_event = self._before_event

    async def meet(self, name: str) -> None:
        """A point: number it, and let the test act."""
        await self.began.wait()
        self.points.append(name)
        await self.at_point(len(self.points) - 1, name)

    async def _before_event(self, request: int, event: int, name: str) -> None:
        await self.meet(f"request {request} event {event} {name}")

    async def _answer(self, request: ModelRequest) -> Reply:
        await self.began.wait()
        results = request.tool_results()
        if not any(one.startswith("read") for one in results):
            return reply(text("Looking."), self._hold("read_a"), self._hold("read_b")).chunked(60)
        if not any(one.startswith("write") for one in results):
            return reply(
                text("Now."), self._hold("read_c"), self._hold("write_d", "probe__hold_write")
            ).chunked(60)
        return reply(text(ANSWER)).chunked(12)

    def _hold(self, name: str, tool: str = "probe__hold") -> Block:
        return call(tool, {"name": name, "directory": str(self.room.folder)}, id=f"{name}-{self.thread[-6:]}")

    async def release_calls(self) -> None:
        """For ever: meet each held call that has begun, then release it, then meet its end."""
        while True:
            for path in sorted(self.room.folder.glob("*.reached")):
                if path.stem not in self.calls_done:
                    self.calls_done.add(path.stem)
                    await self.meet(f"call {path.stem} runs")
                    path.with_suffix(".release").touch()
                    await self.meet(f"call {path.stem} returns")
            await asyncio.sleep(0.01)


def clear(folder: Path) -> None:
    """Forget the calls of an earlier run."""
    for pattern in ("*.reached", "*.release"):
        for path in folder.glob(pattern):
            path.unlink()

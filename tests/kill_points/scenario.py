"""The scripted analysis: a mention, a batch of all three classes, a steer while it runs, a second batch, a
drain in it, and the answer in the next process.

The model answers by what the request holds, so any process goes on where the last one was. What people and
the drain do waits for nothing that a fault may have taken away.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field

from tests.kill_points.world import World
from tests.servers.anthropic.blocks import Block, call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.stories.room import eventually
from tests.stories.telling import until_decided

QUESTION, STEER = "why is checkout slow?", "look at the deploy of 14:05"
ANSWER = "The deploy at 14:05 removed an index."
AT_MOST_S = 12.0
"""So long what should come next is waited for; a fault may have made sure that it never comes."""
BESIDE_S = 0.5
"""And so long a call whose neighbour runs: a side effect that was cut off never comes again."""


@dataclass
class Analysis:
    """One run of it."""

    world: World
    thread: str = ""
    steer: str = ""
    drained: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process was told to drain; whoever starts processes reads it."""

    def install(self) -> None:
        """Make the model play its part."""
        self.world.model.reply_with(self.answer)

    def answer(self, request: ModelRequest) -> Reply:
        """What comes next, by what was asked and answered before."""
        asked = set(request.calls().values())
        if "probe__restart" in asked:
            return reply(text(ANSWER)).chunked(12)
        if not asked:
            return reply(
                text("Looking."),
                self._hold("probe__hold", "read_a"),
                call("probe__set_flag", {"name": "debug", "value": str(self.world.folder)}),
                self._hold("probe__hold_write", "write_a"),
            )
        return reply(
            text("Now."),
            call("probe__restart", {"service": f"checkout of {self.world.folder}"}),
            call("probe__fast", {"text": "done"}),
            self._hold("probe__hold", "read_b"),
        )

    def _hold(self, tool: str, name: str) -> Block:
        return call(tool, {"name": name, "directory": str(self.world.folder)})

    # --- what people do -----------------------------------------------------------------------------------

    async def play(self) -> None:
        """Everything that comes from outside, in its order."""
        slack = self.world.slack
        await slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=40)
        self.thread = await slack.say("Ana", "#inc", QUESTION, mention=True)
        # Nobody answers in a thread before the bot has shown that it is there.
        await slack.wait_for(lambda slack: any(delivery.acked for delivery in slack.deliveries), timeout=20)
        await self._until("read_a", "probe__restart")
        await self._until("write_a", "probe__restart", BESIDE_S)
        self.steer = await slack.say("Ben", "#inc", STEER, thread=self.thread)
        with suppress(AssertionError):
            async with asyncio.timeout(AT_MOST_S):
                await until_decided(self.world, self.thread, self.steer)
        self._release("read_a", "write_a")
        await self._until("read_b", "")
        process = self.world.process
        assert process is not None
        self.drained.set()
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        self._release("read_b")

    async def _until(self, name: str, later: str, at_most_s: float = AT_MOST_S) -> None:
        """Until this call runs, or the model has asked for what comes later, or long enough."""
        path = self.world.folder / f"{name}.reached"

        async def came() -> bool:
            return path.exists() or any(later in one.calls().values() for one in self.world.model.requests)

        with suppress(AssertionError):
            await eventually(came, timeout=at_most_s)

    def _release(self, *names: str) -> None:
        for name in names:
            (self.world.folder / f"{name}.release").touch()

"""The load: several incidents at once, each a scripted analysis with calls of all classes, some with a steer.

The model answers by what the request holds, so whichever process asks goes on where the last one was: first a
read-only call beside an idempotent one, then two with side effects, then the answer.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.fleet.fleet import Fleet
from tests.fleet.member import Member
from tests.servers.anthropic.blocks import Block, call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply

INCIDENT = re.compile(r"incident (\d+):")
CARD = "watchkeeper_card"
PACE_S = 0.01
MOMENT_WITHIN_S = 30.0


class Happening(StrEnum):
    """What a moment may be chosen by."""

    EVENT = "the model sends an event"
    HELD = "a tool call runs"
    FINAL = "the model has sent a final answer"
    CARD = "Slack is shown a card"


@dataclass(frozen=True, slots=True)
class Said:
    """What a person wrote, and when, by the monotonic clock."""

    incident: int
    words: str
    ts: str
    thread: str
    at: float


@dataclass
class Noticed:
    """How often each kind of thing happened, and at whose hands; waited for by number."""

    by_whom: dict[Happening, list[Member]] = field(default_factory=lambda: {kind: [] for kind in Happening})
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def note(self, kind: Happening, member: Member | None) -> None:
        """It happened."""
        if member is not None:
            async with self.changed:
                self.by_whom[kind].append(member)
                self.changed.notify_all()

    async def until(self, kind: Happening, number: int) -> Member:
        """Wait until it has happened so often; returns at whose hands."""
        found = self.by_whom[kind]
        async with asyncio.timeout(MOMENT_WITHIN_S), self.changed:
            await self.changed.wait_for(lambda: len(found) >= number)
        return found[number - 1]


class Load:
    """The incidents of one run. `install` it, then `play`; `holds` and `watching` run beside it."""

    def __init__(self, fleet: Fleet, chance: random.Random, incidents: int = 4) -> None:
        self.fleet = fleet
        self.said: list[Said] = []
        self.noticed = Noticed()
        self.numbers = range(1, incidents + 1)
        self._chance = chance
        self._released: set[str] = set()

    def install(self) -> None:
        """Make the model play its part."""
        self.fleet.model.reply_with(self._answer)
        self.fleet.model.on_event = self._before_event

    # --- what people do -----------------------------------------------------------------------------------

    async def play(self, within_s: float = 0.8) -> None:
        """Everything that people write: a mention for each incident, a steer in every other one."""
        async with asyncio.TaskGroup() as people:
            for number in self.numbers:
                people.create_task(self.incident(number, self._chance.uniform(0, within_s)))

    async def incident(self, number: int, after_s: float = 0.0) -> None:
        """One incident's words, after so long."""
        await asyncio.sleep(after_s)
        thread = await self._say(number, "Ana", f"incident {number}: why is service {number} slow?")
        if number % 2 == 0:
            await asyncio.sleep(self._chance.uniform(0.1, 1.5))
            await self._say(number, "Ben", f"incident {number}: look at deploy {number}", thread)

    async def _say(self, number: int, who: str, words: str, thread: str | None = None) -> str:
        at = time.monotonic()
        ts = await self.fleet.slack.say(who, "#inc", words, thread=thread, mention=thread is None)
        self.said.append(Said(number, words, ts, thread or ts, at))
        return ts

    # --- what the model says ------------------------------------------------------------------------------

    def _answer(self, request: ModelRequest) -> Reply:
        number, asked = incident_of(request), set(request.calls().values())
        if "probe__set_flag" not in asked:
            flag = call("probe__set_flag", {"name": f"debug-{number}", "value": self._mark})
            parts = (text("I look at it."), self._hold("probe__hold", f"{number}-read"), flag)
        elif "probe__restart" not in asked:
            restart = call("probe__restart", {"service": f"service {number} of {self._mark}"})
            parts = (text("I act."), restart, self._hold("probe__hold_write", f"{number}-write"))
        else:
            return reply(text(f"The deploy of service {number} removed an index.")).chunked(12).paced(PACE_S)
        return reply(*parts).chunked(40).paced(PACE_S)

    def _hold(self, tool: str, name: str) -> Block:
        return call(tool, {"name": name, "directory": self._mark})

    @property
    def _mark(self) -> str:
        """What tells this run's calls from all others of the same tool server."""
        return str(self.fleet.folder)

    async def _before_event(self, number: int, _: int, name: str) -> None:
        request = self.fleet.model.requests[number - 1]
        member = self.fleet.member_at(request.headers.get("host", ""))
        await self.noticed.note(Happening.EVENT, member)
        if name == "message_stop" and "probe__restart" in request.calls().values():
            await self.noticed.note(Happening.FINAL, member)

    # --- beside it ----------------------------------------------------------------------------------------

    async def holds(self) -> None:
        """For ever: notice each held call, and let it go a little later."""
        async with asyncio.TaskGroup() as releasing:
            while True:
                for path in self.fleet.folder.glob("*.reached"):
                    if path.stem not in self._released:
                        self._released.add(path.stem)
                        releasing.create_task(self._release(path))
                await asyncio.sleep(0.01)

    async def _release(self, path: Path) -> None:
        number = int(path.stem.partition("-")[0])
        await self.noticed.note(Happening.HELD, self._who_runs(number))
        await asyncio.sleep(self._chance.uniform(0.05, 0.4))
        path.with_suffix(".release").touch()

    def _who_runs(self, number: int) -> Member | None:
        asked = [request for request in self.fleet.model.requests if incident_of(request) == number]
        return self.fleet.member_at(asked[-1].headers.get("host", "")) if asked else None

    async def watching(self) -> None:
        """For ever: notice each card that Slack is asked to show."""
        seen, slack = 0, self.fleet.slack
        while True:
            ring = slack.state.bell.next_ring()
            for one in slack.calls[seen:]:
                if one.method.startswith("chat.") and CARD in str(one.args.get("metadata")):
                    await self.noticed.note(Happening.CARD, self.fleet.member_at(one.host))
            seen = len(slack.calls)
            await ring.wait()


def incident_of(request: ModelRequest) -> int:
    """Which incident a request is about; 0 for none."""
    numbers = Counter(found for said in request.user_texts() for found in INCIDENT.findall(said))
    return int(numbers.most_common(1)[0][0]) if numbers else 0

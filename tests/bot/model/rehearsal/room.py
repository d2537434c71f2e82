"""An investigation over recorded results of the real tools, with what people say on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bot.model.rehearsal.model import decide
from bot.model.rehearsal.transcript import read
from core import prompt
from core.generation import ModelRequest
from core.history import Block, Call, Message, Result, Text, user
from core.tools import ToolClass, ToolSpec

FOLDER = Path(__file__).parent / "recorded"
MOST_STEPS = 12


def spec(name: str, *required: str, **properties: object) -> ToolSpec:
    """A tool that reads, with these properties of type string where nothing else is said."""
    known = {each: {"type": "string"} for each in required} | properties
    return ToolSpec(name, "", {"properties": known, "required": list(required)}, ToolClass.READ_ONLY)


TOOLS = (
    spec("prometheus_query", "query"),
    spec("prometheus_range", "query", "start", unit={"type": "string"}),
    spec("prometheus_alerts"),
    spec("logs_query", "query", start={"type": ["string", "number"]}),
    spec("deploys_list", start={"type": ["string", "number"]}),
    spec("deploys_show", "commit"),
    spec("runbook_search", words={"type": "string"}),
    spec("runbook_read", "name"),
)

Answering = Callable[[Call, str], tuple[str, bool] | None]


@cache
def recorded(name: str) -> dict[str, str]:
    """Result texts by check."""
    found: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


@dataclass
class Room:
    """One thread. `answering` may answer a call otherwise than the record: text, and whether it failed."""

    record: str = "queries"
    tools: tuple[ToolSpec, ...] = TOOLS
    answering: Answering = lambda call, check: None
    messages: list[Message] = field(default_factory=list)
    numbered: int = 0

    def says(self, words: str, name: str = "Ana", role: str = "initiator") -> None:
        """Somebody with the right to instruct writes."""
        text = Text(prompt.person_message(name, role, "14:05:00Z", words))
        if self.messages and self.messages[-1].role == "user":
            self.messages[-1] = user(*self.messages[-1].blocks, text)
        else:
            self.messages.append(user(text))

    def step(self) -> Message:
        """One message of the rehearsal, with the results of its calls."""
        message = decide(ModelRequest("", self.tools, tuple(self.messages)))
        self.messages.append(message)
        if message.calls:
            self.messages.append(user(*(self._result(call) for call in message.calls)))
        return message

    def answer(self) -> str:
        """Go on to the end."""
        for _ in range(MOST_STEPS):
            message = self.step()
            if not message.calls:
                return message.text
        raise AssertionError("no end")

    @property
    def checks(self) -> list[str]:
        """Every check that was made, in order."""
        return [made.check for made in read(self.messages).made]

    def _result(self, call: Call) -> Block:
        self.numbered += 1
        check = call.id.rpartition("-")[0].rpartition("_")[0]
        other = self.answering(call, check)
        text, failed = other or (recorded(self.record).get(check, "no data for this range."), False)
        return Result(call.id, prompt.tool_output(f"c{self.numbered}", call.name, text), is_error=failed)


def asked(words: str = "checkout p99 above 2 s: what is wrong?", **given: object) -> Room:
    """A room in which the question has been asked."""
    room = Room(**given)  # type: ignore[arg-type]
    room.says(words)
    return room

"""One request as it came in, and what became of it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import Spot, spots_of, text_of
from tests.servers.anthropic.usage import Usage

Verdict = Literal["pending", "accepted", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    text: str
    is_error: bool


@dataclass(slots=True, eq=False)
class ModelRequest:
    number: int
    path: str
    headers: Mapping[str, str]
    arrived_ns: int = field(default_factory=time.monotonic_ns)
    raw: bytes = b""
    body: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict = "pending"
    """`refused` by a rule, `failed` by the script or for want of one."""
    faults: Sequence[Fault] = ()
    status: int | None = None
    usage: Usage | None = None
    event_names: list[str] = field(default_factory=list)
    bytes_sent: int = 0
    finished_ns: int | None = None
    """When the whole answer had been sent."""
    closed_at: int | None = None
    """When the client broke the answer off, as monotonic nanoseconds."""

    @property
    def request_id(self) -> str:
        return f"req_{self.number:06d}"

    @property
    def fault(self) -> Fault | None:
        return self.faults[0] if self.faults else None

    @property
    def events_sent(self) -> int:
        return len(self.event_names)

    @property
    def is_open(self) -> bool:
        return self.finished_ns is None and self.closed_at is None

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    def spots(self) -> list[Spot]:
        return spots_of([message for message in self.messages if isinstance(message, Mapping)])

    def user_texts(self) -> list[str]:
        """Every text block and string of the user messages, in order."""
        return [str(spot["text"]) for spot in self.spots() if spot.role == "user" and spot.type == "text"]

    def assistant_texts(self) -> list[str]:
        return [
            str(spot["text"]) for spot in self.spots() if spot.role == "assistant" and spot.type == "text"
        ]

    def calls(self) -> dict[str, str]:
        """Call id → tool name, in order."""
        return {str(spot["id"]): str(spot["name"]) for spot in self.spots() if spot.type == "tool_use"}

    def tool_results(self) -> dict[str, ToolResult]:
        """Call id → what came back, in order."""
        return {
            str(spot["tool_use_id"]): ToolResult(text_of(spot["content"]), bool(spot["is_error"]))
            for spot in self.spots()
            if spot.type == "tool_result"
        }

    def tools(self) -> list[str]:
        return [str(tool.get("name")) for tool in self.body.get("tools") or []]

    def system_text(self) -> str:
        return text_of(self.body.get("system") or "")

    def ends_with(self, text: str) -> bool:
        """Whether the last thing that the user says in it ends so."""
        said = self.user_texts()
        return (
            bool(said)
            and bool(self.messages)
            and self.messages[-1]["role"] == "user"
            and said[-1].endswith(text)
        )

    def dump(self) -> str:
        """For people who read a failed assertion."""
        lines = [
            f"request {self.number} {self.path}: {self.verdict} {self.status}, {self.events_sent} events"
        ]
        lines += [f"  fault {fault.kind}: {fault.message}" for fault in self.faults]
        lines += [f"  {spot.path} {spot.role} {shortened(spot)}" for spot in self.spots()]
        if self.closed_at is not None:
            lines.append("  broken off by the client")
        return "\n".join(lines)


def shortened(spot: Spot, limit: int = 160) -> str:
    shown = str({key: value for key, value in spot.block.items() if key != "type"})
    return f"{spot.type} {shown if len(shown) <= limit else shown[:limit] + '…'}"

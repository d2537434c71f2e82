"""What the model said: every message issued, found again by its call ids and thinking signatures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Issued:
    content: Sequence[Block]
    stop_reason: str | None

    @property
    def thinks(self) -> bool:
        return any(is_thinking(block) for block in self.content)


@dataclass(slots=True)
class Memory:
    messages: list[Issued] = field(default_factory=list)
    by_mark: dict[str, Issued] = field(default_factory=dict)
    thoughts: dict[str, str] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)

    def keep(self, content: Sequence[Block], stop_reason: str | None) -> None:
        issued = Issued(content, stop_reason)
        self.messages.append(issued)
        for block in content:
            self.types.add(str(block.get("type")))
            if mark := mark_of(block):
                self.by_mark[mark] = issued
            if block.get("type") == "thinking" and block.get("signature"):
                self.thoughts[str(block["signature"])] = str(block.get("thinking"))

    def origins(self, content: Sequence[Block]) -> list[Issued]:
        """The issued messages that these blocks come from, each once, in order."""
        found: list[Issued] = []
        for block in content:
            issued = self.by_mark.get(mark_of(block))
            if issued is not None and issued not in found:
                found.append(issued)
        return found

    def paused(self, content: Sequence[Block]) -> bool:
        """Whether this is a message that paused, unchanged."""
        return any(
            issued.stop_reason == "pause_turn" and list(issued.content) == list(content)
            for issued in self.messages
        )


def is_thinking(block: Block) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


def mark_of(block: Block) -> str:
    """What a block is recognised by; empty for a block that has no mark of its own."""
    match block.get("type"):
        case "thinking":
            return f"signature:{block['signature']}" if block.get("signature") else ""
        case "redacted_thinking":
            return f"data:{block.get('data')}"
        case "tool_use" | "server_tool_use":
            return f"call:{block.get('id')}"
        case _:
            return ""

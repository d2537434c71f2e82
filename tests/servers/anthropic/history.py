"""A request's messages as spots (one content block each) and turns (neighbouring messages of one role)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spot:
    message: int
    index: int
    role: str
    block: Block

    @property
    def type(self) -> str:
        return str(self.block.get("type", ""))

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.index}"

    def __getitem__(self, key: str) -> Any:
        return self.block.get(key)


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    spots: tuple[Spot, ...]

    def of_type(self, *types: str) -> list[Spot]:
        return [spot for spot in self.spots if spot.type in types]

    def calls(self) -> list[Spot]:
        return self.of_type("tool_use")

    def results(self) -> list[Spot]:
        return self.of_type("tool_result")


def blocks_of(content: Any) -> list[Block]:
    """A string is shorthand for one text block; an empty string is no block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, Sequence) else []


def spots_of(messages: Sequence[Mapping[str, Any]]) -> list[Spot]:
    return [
        Spot(number, index, str(message.get("role")), block)
        for number, message in enumerate(messages)
        for index, block in enumerate(blocks_of(message.get("content")))
    ]


def turns_of(messages: Sequence[Mapping[str, Any]], *, fold: bool) -> list[Turn]:
    turns: list[Turn] = []
    for number, message in enumerate(messages):
        role = str(message.get("role"))
        spots = tuple(
            Spot(number, index, role, block) for index, block in enumerate(blocks_of(message.get("content")))
        )
        if fold and turns and turns[-1].role == role:
            turns[-1] = Turn(role, turns[-1].spots + spots)
        else:
            turns.append(Turn(role, spots))
    return turns


def inside(spot: Spot) -> Iterator[tuple[str, Block]]:
    """The blocks within a tool result, each with its path."""
    if spot.type == "tool_result" and not isinstance(spot["content"], str):
        for index, block in enumerate(blocks_of(spot["content"])):
            yield f"{spot.path}.tool_result.content.{index}", block


def text_of(content: Any) -> str:
    """All text in a message's or result's content, joined."""
    return "".join(str(block.get("text", "")) for block in blocks_of(content) if block.get("type") == "text")

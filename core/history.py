"""The transcript in its neutral form: messages made of blocks, as committed and shown to the model.

Rule 1: a committed message is never rewritten; it is only followed by others.
Rule 2: every `Call` of an assistant message is answered by a `Result` in the message right behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

Json: TypeAlias = Any  # what json.loads gives; narrowed where it is read


class Role(StrEnum):
    """Who speaks in the transcript."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Text:
    """Plain words."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asked for. `id` is unique in the conversation and legal on the wire."""

    id: str
    name: str
    input: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came back with; `is_error` also for calls that were never run."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block that only its provider understands (thinking, server tools): kept whole or dropped whole."""

    provider: str
    data: Mapping[str, Json]


Block: TypeAlias = Text | Call | Result | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One committed message of the transcript."""

    role: Role
    blocks: tuple[Block, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of this message, in the order in which the model made them."""
        return tuple(block for block in self.blocks if isinstance(block, Call))

    @property
    def text(self) -> str:
        """All words of this message, joined as the model wrote them."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


def user(*blocks: Block) -> Message:
    """A user message."""
    return Message(Role.USER, blocks)


def assistant(*blocks: Block) -> Message:
    """An assistant message."""
    return Message(Role.ASSISTANT, blocks)


def block_to_json(block: Block) -> dict[str, Json]:
    """The stored form of a block."""
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Call():
            return {"type": "call", "id": block.id, "name": block.name, "input": dict(block.input)}
        case Result():
            return {
                "type": "result",
                "call_id": block.call_id,
                "text": block.text,
                "is_error": block.is_error,
            }
        case Opaque():
            return {"type": "opaque", "provider": block.provider, "data": dict(block.data)}
        case _ as never:
            assert_never(never)


def block_from_json(data: Mapping[str, Json]) -> Block:
    """A block from its stored form."""
    match data["type"]:
        case "text":
            return Text(data["text"])
        case "call":
            return Call(data["id"], data["name"], data["input"])
        case "result":
            return Result(data["call_id"], data["text"], data["is_error"])
        case "opaque":
            return Opaque(data["provider"], data["data"])
        case other:
            raise ValueError(f"unknown block type {other!r}")


def blocks_to_json(blocks: Sequence[Block]) -> list[dict[str, Json]]:
    """The stored form of a message's blocks."""
    return [block_to_json(block) for block in blocks]


def message_from_json(role: str, blocks: Sequence[Mapping[str, Json]]) -> Message:
    """A message from its stored form."""
    return Message(Role(role), tuple(block_from_json(block) for block in blocks))

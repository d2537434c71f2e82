"""Blocks of a streamed message: as they grow, finished, and as blocks of our transcript. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.model.clean import clean, clean_text
from bot.model.parsing import parsed_input
from bot.model.wire import CITATIONS, PROVIDER
from core.call_ids import legalised
from core.generation import InvalidCall
from core.history import Block, Call, Json, Message, Opaque, Role, Text

CUT = "cut at the token limit"
REFUSED = "the model declined to go on"

# Delta type → the key that holds its fragment.
_FRAGMENTS: Mapping[str, str] = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


class OpenBlock:
    """A block whose end has not come yet."""

    __slots__ = ("citations", "fragments", "kind", "start")

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.start = start
        self.kind = str(start["type"])
        self.fragments: dict[str, list[str]] = {}
        self.citations: list[Any] = list(start.get(CITATIONS) or ())

    @property
    def characters(self) -> int:
        return sum(len(str(self.start.get(key) or "")) for key in ("text", "thinking", "name"))

    def add(self, delta: Mapping[str, Any]) -> int:
        """Take a delta and return its length; unknown kinds are left out."""
        key = _FRAGMENTS.get(delta["type"])
        if key is None:
            if "citation" in delta:
                self.citations.append(delta["citation"])
            return 0
        fragment: str = delta[key]
        self.fragments.setdefault(key, []).append(fragment)
        return len(fragment)

    def finished(self) -> Finished:
        """The block at its end; fragments are joined once, and raise TypeError when one is no text."""
        joined = {key: "".join(fragments) for key, fragments in self.fragments.items()}
        return Finished(self.kind, self.start, joined, tuple(self.citations))


@dataclass(frozen=True, slots=True)
class Finished:
    """A whole block as the stream gave it."""

    kind: str
    start: Mapping[str, Any]
    joined: Mapping[str, str]
    citations: tuple[Any, ...]

    def whole(self, key: str) -> str:
        """A text of the block: what it began with and what came after."""
        return str(self.start.get(key) or "") + self.joined.get(key, "")


def message_of(
    finished: Sequence[Finished], *, was_cut: bool, was_refused: bool
) -> tuple[Message, tuple[InvalidCall, ...]]:
    """The message, and those of its calls that must not run.

    A last call without a readable input, cut at the token limit, was never issued and is left out.
    """
    blocks: list[Block] = []
    why_not: dict[int, str] = {}
    for number, block in enumerate(finished):
        if block.kind != "tool_use":
            blocks.extend(_plain(block))
            continue
        call, why = _call(block)
        if was_cut and why and number == len(finished) - 1:
            continue
        if was_cut or was_refused:
            why = CUT if was_cut else REFUSED
        if why:
            why_not[len(blocks)] = why
        blocks.append(call)
    return _named(Message(Role.ASSISTANT, tuple(blocks)), why_not)


def _named(message: Message, why_not: Mapping[int, str]) -> tuple[Message, tuple[InvalidCall, ...]]:
    """Invalid calls by id. Ids stay as given, unless one would name two calls of which one is invalid."""
    ids = [call.id for call in message.calls]
    if why_not and len(set(ids)) < len(ids):
        message, _ = legalised(message, frozenset())
    named = ((message.blocks[index], why) for index, why in why_not.items())
    return message, tuple(InvalidCall(block.id, why) for block, why in named if isinstance(block, Call))


def _call(block: Finished) -> tuple[Call, str]:
    """The call, and why it cannot run ("" when it can). Without fragments its input is what it began with."""
    call = Call(str(block.start.get("id") or ""), clean_text(str(block.start.get("name") or "")), {})
    text = block.joined.get("partial_json", "")
    start = block.start.get("input") or {}
    if not text and isinstance(start, Mapping):
        return replace(call, input=clean(start)), ""
    value, why = parsed_input(text)
    return replace(call, input=clean(value)), why


def _plain(block: Finished) -> list[Block]:
    """Text stays text, with its citations beside it; everything else is the provider's own."""
    if block.kind == "text":
        text = block.whole("text")
        if not text:
            return []
        cited = {"type": CITATIONS, CITATIONS: clean(block.citations)}
        return [Text(clean_text(text)), *([Opaque(PROVIDER, cited)] if block.citations else [])]
    if block.kind == "thinking":
        thought = {key: clean_text(block.whole(key)) for key in ("thinking", "signature")}
        # Unsigned, it could not be sent back (openclaw/openclaw#84430): dropped whole.
        return [Opaque(PROVIDER, {"type": "thinking", **thought})] if thought["signature"] else []
    data: dict[str, Json] = clean(block.start)
    if text := block.joined.get("partial_json", ""):
        data["input"] = clean(parsed_input(text)[0])
    return [Opaque(PROVIDER, data)]

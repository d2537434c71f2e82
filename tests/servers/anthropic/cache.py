"""Prompt caching, simulated: prefixes are kept at breakpoints, found again by hash.

Rule 1: the prefix runs tools, system, messages; any change in it changes every hash behind it.
Rule 2: only breakpoints write. A read looks back from each breakpoint, at most LOOK_BACK blocks.
Rule 3: changing the model loses everything; changing tool_choice or thinking loses the messages.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.anthropic.history import blocks_of
from tests.servers.anthropic.tokens import tokens_in
from tests.servers.anthropic.usage import Usage

LOOK_BACK = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """One cacheable block: the hash of everything up to and with it, its tokens, its breakpoint's ttl."""

    prefix: str
    tokens: int
    ttl: str | None


@dataclass(slots=True)
class PromptCache:
    least_tokens: int = 0
    """The real minimum is 1,024 tokens and more; tests of books want to see small prompts cached."""
    prefixes: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """As when every entry has expired."""
        self.prefixes.clear()

    def take(self, body: Mapping[str, Any]) -> Usage:
        """What this request reads and writes; the entries are there for the next one."""
        pieces = list(pieces_of(body))
        marks = [number for number, piece in enumerate(pieces) if piece.ttl]
        marks = [mark for mark in marks if tokens_to(pieces, mark) >= self.least_tokens]
        total = sum(piece.tokens for piece in pieces)
        if not marks:
            return Usage(input=total)
        found = self.longest_hit(pieces, marks)
        read = tokens_to(pieces, found)
        written = max(tokens_to(pieces, marks[-1]) - read, 0)
        hour = [mark for mark in marks if pieces[mark].ttl == "1h"]
        long_lived = max(tokens_to(pieces, hour[-1]) - read, 0) if hour else 0
        self.prefixes.update(pieces[mark].prefix for mark in marks)
        return Usage(total - read - written, cache_read=read, cache_write=written, cache_write_1h=long_lived)

    def longest_hit(self, pieces: list[Piece], marks: list[int]) -> int:
        for mark in reversed(marks):
            for number in range(mark, max(mark - LOOK_BACK, -1), -1):
                if pieces[number].prefix in self.prefixes:
                    return number
        return -1


def tokens_to(pieces: list[Piece], last: int) -> int:
    return sum(piece.tokens for piece in pieces[: last + 1])


def pieces_of(body: Mapping[str, Any]) -> Iterator[Piece]:
    digest = hashlib.sha256(str(body.get("model")).encode())
    blocks = list(blocks_in(body))
    automatic = body.get("cache_control")
    for number, (place, block) in enumerate(blocks):
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        digest.update(json.dumps([place, plain], sort_keys=True).encode())
        control = block.get("cache_control") or inner_control(block)
        if automatic and number == len(blocks) - 1:
            control = control or automatic
        ttl = control.get("ttl") or "5m" if control else None
        yield Piece(digest.hexdigest(), tokens_in(plain), ttl)


def blocks_in(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in body.get("tools") or []:
        yield "tools", tool
    for block in blocks_of(body.get("system") or ""):
        yield "system", block
    settings = json.dumps([body.get("tool_choice"), body.get("thinking")], sort_keys=True)
    for message in body.get("messages") or []:
        for block in blocks_of(message.get("content")):
            yield f"{settings}{message.get('role')}", block


def inner_control(block: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A breakpoint on a block within a tool result ends the prefix at that result."""
    found = [inner["cache_control"] for inner in inner_blocks(block) if inner.get("cache_control")]
    return found[-1] if found else None


def inner_blocks(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return blocks_of(block["content"]) if isinstance(block.get("content"), list) else []


def tokens_of(body: Mapping[str, Any]) -> int:
    """What count_tokens says."""
    return sum(piece.tokens for piece in pieces_of(body))

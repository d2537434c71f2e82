"""The blocks a model may say: whole, and as the pieces in which a stream delivers them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of deltas: their type, the key of their text, and the text to be split."""

    delta: str
    key: str
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    full: Mapping[str, Any]
    start: Mapping[str, Any]
    pieces: tuple[Piece, ...] = ()
    mint: str | None = None
    """The prefix of an id that the server has yet to give."""
    extra_deltas: tuple[Mapping[str, Any], ...] = field(default=())

    def with_id(self, new_id: str) -> "Block":
        key = "signature" if self.full["type"] == "thinking" else "id"
        full = {**self.full, key: new_id}
        if key == "signature":
            signed = tuple(replace(p, text=new_id) if p.key == "signature" else p for p in self.pieces)
            return replace(self, full=full, pieces=signed, mint=None)
        return replace(self, full=full, start={**self.start, key: new_id}, mint=None)

    @property
    def type(self) -> str:
        return str(self.full["type"])


def text(value: str, *, citations: list[Mapping[str, Any]] | None = None) -> Block:
    deltas = tuple({"type": "citations_delta", "citation": citation} for citation in citations or [])
    full: dict[str, Any] = {"type": "text", "text": value}
    start: dict[str, Any] = {"type": "text", "text": ""}
    if citations is not None:
        full["citations"], start["citations"] = citations, []
    return Block(full, start, (Piece("text_delta", "text", value),), extra_deltas=deltas)


def call(
    name: str, input: Mapping[str, Any] | None = None, *, id: str | None = None, raw: str | None = None
) -> Block:
    """A tool call. `raw` streams this text as its input instead, valid JSON or not."""
    return calling("tool_use", "toolu_", name, input, id=id, raw=raw)


def server_call(name: str, input: Mapping[str, Any] | None = None, *, id: str | None = None) -> Block:
    return calling("server_tool_use", "srvtoolu_", name, input, id=id)


def calling(
    kind: str,
    prefix: str,
    name: str,
    input: Mapping[str, Any] | None,
    *,
    id: str | None,
    raw: str | None = None,
) -> Block:
    given = {} if input is None else input
    sent = raw if raw is not None else dumps(given) if given else ""
    start = {"type": kind, "id": id or "", "name": name, "input": {}}
    full = {**start, "input": given if raw is None else parsed(raw)}
    return Block(
        full, start, (Piece("input_json_delta", "partial_json", sent),), mint=prefix if id is None else None
    )


def thinking(value: str, signature: str | None = None) -> Block:
    """Without a signature the server signs it; an empty one is sent as it is."""
    start = {"type": "thinking", "thinking": "", "signature": ""}
    pieces = (
        Piece("thinking_delta", "thinking", value),
        Piece("signature_delta", "signature", signature or "", whole=True),
    )
    full = {"type": "thinking", "thinking": value, "signature": signature or ""}
    return Block(full, start, pieces, mint="sig_" if signature is None else None)


def redacted_thinking(data: str) -> Block:
    return raw_block({"type": "redacted_thinking", "data": data})


def server_result(kind: str, tool_use_id: str, content: Any) -> Block:
    """For example `server_result("web_search_tool_result", "srvtoolu_1", [...])`."""
    return raw_block({"type": kind, "tool_use_id": tool_use_id, "content": content})


def raw_block(block: Mapping[str, Any]) -> Block:
    """Any block at all, sent whole in its start event."""
    return Block(block, block)


def parsed(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def dumps(value: Any) -> str:
    """As the API writes it: plain UTF-8, and escapes only for what UTF-8 cannot hold."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        plain.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return plain

"""What a script is made of: replies with their faults and gates, HTTP errors, and silence.

`reply("hello", call("logs", {"app": "shop"})).held(gate, before="message_delta").paced(0.01)`

A place in a stream is a number (before that many events have been sent) or an event's name, with `:2` for the
third block: `"content_block_stop:2"`. Places are counted before pings and unknown events are mixed in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.servers.anthropic.blocks import Block, text
from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.usage import Usage

DERIVED = "derived"
Place = int | str


@dataclass(frozen=True, slots=True)
class Hold:
    place: Place
    gate: Gate


@dataclass(frozen=True, slots=True)
class Cut:
    """The TCP connection closes; with `after_bytes`, that far into the event at this place."""

    place: Place
    after_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes any more, and the connection stays open."""

    place: Place


@dataclass(frozen=True, slots=True)
class Break:
    """`event: error`, after HTTP 200."""

    place: Place
    kind: str
    message: str


Edit = Hold | Cut | Stall | Break


@dataclass(frozen=True, slots=True)
class Reply:
    parts: tuple[Block | Gate, ...] = ()
    stop_reason: str | None = DERIVED
    stop_sequence: str | None = None
    stop_details: Mapping[str, Any] | None = None
    usage: Usage | None = None
    chunk: int | None = None
    """Characters in a delta; None makes up to four deltas of each text."""
    delay: float = 0.0
    edits: tuple[Edit, ...] = ()
    without: frozenset[str] = field(default_factory=frozenset)
    pings: int = 0
    """A ping after every so many events."""
    unknown_events: int = 0
    model: str | None = None

    @property
    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    def held(self, gate: Gate, *, before: Place) -> "Reply":
        return self._edited(Hold(before, gate))

    def cut(self, *, before: Place, after_bytes: int = 0) -> "Reply":
        return self._edited(Cut(before, after_bytes))

    def stalled(self, *, before: Place) -> "Reply":
        return self._edited(Stall(before))

    def broken(
        self, *, before: Place, kind: str = "overloaded_error", message: str = "Overloaded"
    ) -> "Reply":
        return self._edited(Break(before, kind, message))

    def lacking(self, *events: str) -> "Reply":
        """Leave out all events of these names, such as `message_stop`."""
        return replace(self, without=self.without | set(events))

    def pinged(self, *, every: int = 1) -> "Reply":
        return replace(self, pings=every)

    def with_unknown_events(self, *, every: int = 1) -> "Reply":
        return replace(self, unknown_events=every)

    def paced(self, delay: float) -> "Reply":
        return replace(self, delay=delay)

    def chunked(self, characters: int) -> "Reply":
        return replace(self, chunk=characters)

    def _edited(self, edit: Edit) -> "Reply":
        return replace(self, edits=(*self.edits, edit))

    @property
    def why_stopped(self) -> str | None:
        if self.stop_reason != DERIVED:
            return self.stop_reason
        return "tool_use" if any(block.type == "tool_use" for block in self.blocks) else "end_turn"


@dataclass(frozen=True, slots=True)
class HttpError:
    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """Not one byte of an answer, for ever."""


Step = Reply | HttpError | Hang


def reply(
    *parts: str | Block | Gate,
    stop_reason: str | None = DERIVED,
    stop_sequence: str | None = None,
    stop_details: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    model: str | None = None,
) -> Reply:
    """A reply of these blocks; a string is a text block, a gate holds the stream between its neighbours."""
    whole = tuple(text(part) if isinstance(part, str) else part for part in parts)
    return Reply(
        whole,
        stop_reason,
        stop_sequence,
        stop_details,
        usage,
        model=model,
    )


def refusal(*parts: str | Block, explanation: str | None = None) -> Reply:
    details = {"type": "refusal", "category": None, "explanation": explanation}
    return reply(*parts, stop_reason="refusal", stop_details=details)


def overloaded() -> HttpError:
    return HttpError(529, "overloaded_error", "Overloaded")


def rate_limited(retry_after: float | None = None) -> HttpError:
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    words = "This request would exceed your account's rate limit. Please try again later."
    return HttpError(429, "rate_limit_error", words, headers)


def server_error() -> HttpError:
    return HttpError(500, "api_error", "Internal server error")


def invalid_key() -> HttpError:
    return HttpError(401, "authentication_error", "invalid x-api-key")


def forbidden() -> HttpError:
    words = "Your API key does not have permission to use the specified resource."
    return HttpError(403, "permission_error", words)


def unknown_model(model: str) -> HttpError:
    return HttpError(404, "not_found_error", f"model: {model}")


def hang() -> Hang:
    return Hang()

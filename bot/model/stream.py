"""A streamed answer, event by event, until it is a message. Pure.

    stream := message_start block* message_delta+ message_stop
    block  := content_block_start content_block_delta* content_block_stop
    pings and unknown events may come anywhere; an error ends it

https://docs.claude.com/en/docs/build-with-claude/streaming

Rule 1: a block counts once its content_block_stop is there, a message once its stop reason is there.
Rule 2: a stream that ends without a stop reason was interrupted; nothing of it was said.
Rule 3: a call cut off at the token limit was never issued; the finished ones beside it are not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bot.model.blocks import Finished, OpenBlock, message_of
from core.generation import InvalidCall, StopReason
from core.history import Message

STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "refusal": StopReason.REFUSAL,
    "pause_turn": StopReason.PAUSE,
    "model_context_window_exceeded": StopReason.CONTEXT_FULL,
}
_CUT = frozenset({StopReason.LENGTH, StopReason.CONTEXT_FULL})
_LONGEST_NAME = 64


class Broken(Exception):
    """The stream is not what the grammar allows, or ended too early."""


class ErrorEvent(Exception):
    """An `event: error` after HTTP 200; `kind` is the API's error type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Reading:
    """What a stream has said so far."""

    __slots__ = ("characters", "doing", "ended", "model", "open", "stop_reason", "usage", "whole")

    def __init__(self) -> None:
        self.open: dict[int, OpenBlock] = {}
        self.whole: dict[int, Finished] = {}
        self.stop_reason: str | None = None
        self.ended = False
        self.usage: dict[str, int] = {}
        self.model = ""
        self.characters = 0
        self.doing = "thinking"

    def take(self, event: Any) -> None:
        """Read one event; raises Broken or ErrorEvent. Deltas are nearly all events, so they go first."""
        try:
            kind = event["type"]
            if kind == "content_block_delta":
                self.characters += self.open[event["index"]].add(event["delta"])
            elif (handle := _HANDLERS.get(kind)) is not None:
                handle(self, event)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise Broken(f"{type(error).__name__} in an event") from error

    @property
    def is_complete(self) -> bool:
        """Whether the whole message is there."""
        return self.stop_reason is not None

    def result(self) -> tuple[Message, StopReason, tuple[InvalidCall, ...]]:
        """The message; raises Broken when it is not whole."""
        if self.stop_reason is None:
            raise Broken("it ended too early")
        stop = STOP_REASONS.get(self.stop_reason, StopReason.UNKNOWN)
        if self.open and stop not in _CUT:
            raise Broken("a block was not ended")
        blocks = [self.whole[index] for index in sorted(self.whole)]
        message, invalid = message_of(blocks, was_cut=stop in _CUT, was_refused=stop is StopReason.REFUSAL)
        if stop in {StopReason.END, StopReason.CALLS}:
            # Some gateways say tool_use without a call (rescrv/claudius#106), or end_turn with one.
            stop = StopReason.CALLS if message.calls else StopReason.END
        return message, stop, invalid

    # --- one handler per event that is no delta ---

    def _message_start(self, event: Any) -> None:
        if self.model or self.whole or self.open:
            raise Broken("it began twice")
        message = event["message"]
        self.model = str(message.get("model") or "")
        self._count(message.get("usage"))

    def _block_start(self, event: Any) -> None:
        index = event["index"]
        if not isinstance(index, int) or index in self.whole or index in self.open:
            raise Broken("a block began twice")
        block = self.open[index] = OpenBlock(event["content_block"])
        self.characters += block.characters
        if block.kind == "text":
            self.doing = "writing"
        elif block.kind == "tool_use":
            self.doing = f"preparing a call of {str(block.start.get('name'))[:_LONGEST_NAME]}"
        else:
            self.doing = "thinking"

    def _block_stop(self, event: Any) -> None:
        index = event["index"]
        self.whole[index] = self.open.pop(index).finished()

    def _message_delta(self, event: Any) -> None:
        reason = event["delta"].get("stop_reason")
        if reason is not None:
            self.stop_reason = str(reason)
        self._count(event.get("usage"))

    def _message_stop(self, event: Any) -> None:
        self.ended = True

    def _error(self, event: Any) -> None:
        error = event.get("error") or {}
        raise ErrorEvent(str(error.get("type") or ""), str(error.get("message") or "no reason given"))

    def _count(self, usage: Any) -> None:
        """Counts are cumulative: the later one replaces the earlier."""
        for key, value in (usage or {}).items():
            if isinstance(value, int):
                self.usage[key] = value


_HANDLERS: Mapping[str, Callable[[Reading, Any], None]] = {
    "message_start": Reading._message_start,
    "content_block_start": Reading._block_start,
    "content_block_stop": Reading._block_stop,
    "message_delta": Reading._message_delta,
    "message_stop": Reading._message_stop,
    "error": Reading._error,
}

"""What a model request can come back with. A failure is a value, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from core.history import Message
from core.tools import ToolSpec
from core.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: everything that the bytes on the wire depend on.

    `purpose` is "step" for the request of a step; any other word marks a side request (contract §8).
    """

    instructions: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    purpose: str = "step"


class StopReason(StrEnum):
    """Why the model stopped, in neutral words; an unknown one is told apart from all others."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    PAUSE = "pause"
    CONTEXT_FULL = "context_full"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call of the message whose input could not be read; it is answered with `why` and never run."""

    call_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Generated:
    """A complete message. Its call ids are as the model gave them (possibly empty or doubled)."""

    message: Message
    stop: StopReason
    usage: Usage
    model: str
    invalid_calls: tuple[InvalidCall, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationFailed:
    """No usable message came. `cause` is one line for people.

    `temporary` failures are worth another try, not before `retry_after_s` seconds where the provider said so.
    """

    cause: str
    temporary: bool
    usage: Usage
    retry_after_s: float | None = None


GenerationOutcome: TypeAlias = Generated | GenerationFailed

"""What can happen to a running turn: facts, in the past tense. `core.turn` decides what follows from each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from core.generation import Generated, GenerationFailed
from core.signals import Held


@dataclass(frozen=True, slots=True)
class Began:
    """The turn was started.

    `open_calls` are those without a result in a batch that its predecessor left open; None when it left none.
    """

    open_calls: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BellRang:
    """Somebody rang; it means nothing until a probe has looked."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe looked at the signals in their order; `held` is the first that holds."""

    held: Held | None


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """A complete message came."""

    generated: Generated


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """No usable message came.

    `waited_s` is the time since the first try of this request, `jitter` is in [0, 1).
    """

    failure: GenerationFailed
    waited_s: float
    jitter: float


@dataclass(frozen=True, slots=True)
class Waited:
    """The time between two tries is over."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The message and its calls are durable. `open_calls` are those that have no result yet."""

    open_calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """A steer or stop was decided before the commit."""

    held: Held


@dataclass(frozen=True, slots=True)
class CallReturned:
    """The result of a call is durable."""

    call_id: str


@dataclass(frozen=True, slots=True)
class BatchClosed:
    """The batch is in the transcript."""


@dataclass(frozen=True, slots=True)
class SettleRefused:
    """A steer or stop was decided before the turn ended of its own accord."""

    held: Held


@dataclass(frozen=True, slots=True)
class Settled:
    """The settle record is durable."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The turn has lasted too long, or something else dooms it."""

    cause: str


Input: TypeAlias = (
    Began | BellRang | Probed | ModelAnswered | ModelFailed | Waited | Committed | CommitRefused
    | CallReturned | BatchClosed | SettleRefused | Settled | LimitReached
)  # fmt: skip

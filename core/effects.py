"""What a turn asks for, in the imperative. `bot.flow.turn_loop` performs each; the core performs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from core.generation import Generated
from core.history import Message
from core.settle import Ending
from core.signals import Held


@dataclass(frozen=True, slots=True)
class Probe:
    """Look at the signals in their order."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send the transcript, followed by what the model had said when it paused."""

    paused: Message | None = None


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Break the model stream off; nothing of it was committed."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait before the next try and say so on the card."""

    seconds: float
    cause: str
    next_try: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Make the message and its calls durable, unless a steer or stop was decided first."""

    generated: Generated
    past_steers: bool


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Run every open call of the batch, in parallel."""


@dataclass(frozen=True, slots=True)
class Hurry:
    """Ask interruptible tools to stop, and say on the card what is waited for."""

    held: Held | None


@dataclass(frozen=True, slots=True)
class CloseBatch:
    """Put the batch's results into the transcript, with the stamp when the turn is cut here."""

    stamp: Held | None


@dataclass(frozen=True, slots=True)
class Settle:
    """Write the settle record."""

    ending: Ending


Effect: TypeAlias = Probe | AskModel | BreakOff | Wait | Commit | RunCalls | Hurry | CloseBatch | Settle

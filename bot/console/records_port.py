"""What the page asks of the records, of the incident and of the process; compose implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from core.policy import Policy


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands: whether a turn runs or is due, and who began it."""

    running: bool = False
    initiator: str | None = None


class Records(Protocol):
    """The records of this installation, for reading. The forms are those of contract §5."""

    async def standing(self, conversation_id: str) -> Standing:
        """How it stands now."""
        ...

    async def settles(self, conversation_id: str) -> list[dict[str, Any]]:
        """Its settle records, newest last."""
        ...

    async def conversation(self, conversation_id: str) -> dict[str, Any] | None:
        """What happened in it; None while nothing has."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How an incident begins: what the alert says, and what somebody on call asks."""

    alert: str
    question: str


class Stage(Protocol):
    """The bundled incident, as the page may know it: never the root cause before the end."""

    @property
    def choices(self) -> Sequence[tuple[str, str]]:
        """What can be picked: an id, and words that give nothing away."""
        ...

    async def begin(self, choice: str) -> Opening:
        """Let it happen, and say how it is noticed."""
        ...

    def told(self) -> str:
        """Which fault it is, for a person who asks; "" where nobody knows."""
        ...


@dataclass(frozen=True, slots=True)
class Process:
    """The process that serves: what it is, and how it can be ended. Without a supervisor it cannot be."""

    model_name: str
    scripted: bool
    kill: Callable[[], None] | None = None
    restart: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Inside:
    """Everything that the page is given."""

    records: Records
    policy: Policy
    responders: frozenset[str]
    process: Process
    stage: Stage

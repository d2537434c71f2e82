"""One line of the doctor's report, and what a check is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from bot.settings import Settings


class State(Enum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `words` of a failure say the mend."""

    name: str
    state: State
    words: str

    @classmethod
    def ok(cls, name: str, words: str) -> Finding:
        """It works."""
        return cls(name, State.OK, words)

    @classmethod
    def failed(cls, name: str, words: str) -> Finding:
        """It is configured and does not work."""
        return cls(name, State.FAILED, words)

    @classmethod
    def off(cls, name: str, mend: str) -> Finding:
        """It is not configured, which is no failure."""
        return cls(name, State.OFF, f"not configured; {mend}")


Check: TypeAlias = Callable[[Settings], Awaitable[list[Finding]]]

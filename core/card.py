"""The progress card: what people see of a turn, in words and numbers, with nothing of any platform in it.

Rule 1: a card is made anew from the records each time; it is never the place where state lives.
Rule 2: a released card never says that something is in progress and cannot be stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.reasons import Reason
from core.usage import Usage


class CardState(StrEnum):
    """A card is live until its turn's settle record releases it."""

    LIVE = "live"
    RELEASED = "released"


class LineState(StrEnum):
    """The state of one line of work on the card."""

    RUNNING = "running"
    DONE = "done"
    NOTED = "noted"  # came back with an error, was stopped or is unknown: said in words, no alarm


@dataclass(frozen=True, slots=True)
class CardLine:
    """One tool call on the card. `seconds` is None where it is not known; `detail` says what it looked at."""

    key: str
    title: str
    state: LineState
    seconds: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that a platform needs to draw the card of one turn.

    `headline` is the state in a few words, `activity` one line of what is being done now ("" when released);
    `updated_at` is in seconds since the epoch; `shrunk` asks for the one-line form.
    """

    turn_id: str
    state: CardState
    goal: str
    headline: str
    activity: str = ""
    lines: tuple[CardLine, ...] = ()
    steered_by: tuple[str, ...] = ()
    usage: Usage = Usage()
    started_at: float = 0.0
    updated_at: float = 0.0
    reason: Reason | None = None
    shrunk: bool = False
    stoppable: bool = False

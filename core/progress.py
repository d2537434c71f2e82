"""From the records of a turn to its card: the words that people read.

Rule 1: the card says in one line what is being done; never what the model thinks.
Rule 2: a released card speaks only of what has been.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.card import Card, CardLine, CardState, LineState
from core.history import Json
from core.reasons import Reason
from core.resume import CallState
from core.tools import Outcome
from core.usage import Usage

WHO = "{by}"

RELEASED: Mapping[Reason, str] = {
    Reason.COMPLETED: "Answered",
    Reason.EMPTY: "Ended without an answer",
    Reason.STEERED: f"Steered by {WHO}",
    Reason.DRAINED: "Handed over: this worker shut down",
    Reason.DISPATCHED: "Waits for its helpers",
    Reason.AWAITING: "Waits for an answer",
    Reason.PARKED: "Waits for a job",
    Reason.STOPPED: f"Stopped by {WHO}",
    Reason.OVER_BUDGET: "Ended: the budget is spent",
    Reason.FAILED: "Failed",
    Reason.STALE: "Interrupted: the worker was lost",
}

OUTCOME_WORDS: Mapping[Outcome, str] = {
    Outcome.OK: "",
    Outcome.ERROR: "error",
    Outcome.STOPPED: "stopped",
    Outcome.ASKED_TO_STOP: "asked to stop",
    Outcome.TIMED_OUT: "no answer in time",
    Outcome.NOT_EXECUTED: "not executed",
    Outcome.UNKNOWN: "outcome unknown",
}


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call as recorded. Times are in seconds since the epoch, `limit_s` is the tool's time limit."""

    id: str
    number: int
    tool: str
    input: Mapping[str, Json]
    state: CallState
    limit_s: float
    started_at: float | None = None
    finished_at: float | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """One turn as recorded. `reason` is None while it runs; names are people's, not ids."""

    turn_id: str
    goal: str
    started_at: float
    steps: int
    activity: str = ""
    reason: Reason | None = None
    ended_by: str | None = None
    cause: str | None = None
    settled_at: float | None = None
    stopping_for: str | None = None  # who asked to stop, while it still runs
    steered_now_by: str | None = None  # who waits to be read, while it still runs


def card_of(
    turn: TurnFacts, calls: Sequence[CallFacts], usage: Usage, steered_by: Sequence[str], now: float
) -> Card:
    """The card that a turn should show at this time."""
    lines = tuple(_line(call, now) for call in calls)
    if turn.reason is None:
        return Card(
            turn_id=turn.turn_id,
            goal=turn.goal,
            usage=usage,
            started_at=turn.started_at,
            state=CardState.LIVE,
            headline=_live_headline(turn, calls, now),
            activity=turn.activity or _activity(calls),
            lines=lines,
            steered_by=_distinct(steered_by),
            updated_at=now,
            stoppable=turn.stopping_for is None,
        )
    return Card(
        turn_id=turn.turn_id,
        goal=turn.goal,
        usage=usage,
        started_at=turn.started_at,
        state=CardState.RELEASED,
        headline=_released_headline(turn),
        lines=tuple(_at_rest(line) for line in lines),
        steered_by=_distinct(steered_by),
        updated_at=turn.settled_at or now,
        reason=turn.reason,
        shrunk=shrinks(turn.reason, turn.steps),
    )


def shrinks(reason: Reason, steps: int) -> bool:
    """Whether the next turn posts its own card, so that this one is released as a single line."""
    return reason is Reason.STEERED and steps > 0


def _live_headline(turn: TurnFacts, calls: Sequence[CallFacts], now: float) -> str:
    if turn.stopping_for is not None:
        return f"Stopping: {_waits_for(calls, now)}"
    if turn.steered_now_by is not None:
        return f"{turn.steered_now_by} wrote: {_waits_for(calls, now)}"
    return "Investigating"


def _waits_for(calls: Sequence[CallFacts], now: float) -> str:
    running = [call for call in calls if call.state is not CallState.DONE]
    if not running:
        return "at the next safe point"
    left = max(call.limit_s - (now - (call.started_at or now)) for call in running)
    what = "1 call" if len(running) == 1 else f"{len(running)} calls"
    return f"{what}, at most {max(1, round(left))} s"


def _activity(calls: Sequence[CallFacts]) -> str:
    running = [call for call in calls if call.state is not CallState.DONE]
    if not running:
        return "Thinking"
    names = _distinct([call.tool for call in running])
    return f"Running {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"


def _released_headline(turn: TurnFacts) -> str:
    assert turn.reason is not None
    headline = RELEASED[turn.reason].replace(WHO, turn.ended_by or "somebody")
    return f"{headline}: {turn.cause}" if turn.cause else headline


def _line(call: CallFacts, now: float) -> CardLine:
    title = f"c{call.number} {call.tool}"
    detail = preview(call.input)
    if call.state is not CallState.DONE:
        seconds = None if call.started_at is None else max(0.0, now - call.started_at)
        return CardLine(call.id, title, LineState.RUNNING, seconds, detail)
    took = (
        call.finished_at - call.started_at
        if call.finished_at is not None and call.started_at is not None
        else None
    )
    words = OUTCOME_WORDS[call.outcome or Outcome.UNKNOWN]
    if not words:
        return CardLine(call.id, title, LineState.DONE, took, detail)
    return CardLine(call.id, f"{title} ({words})", LineState.NOTED, took, detail)


def _at_rest(line: CardLine) -> CardLine:
    """A released card shows no call as running, whatever the records still hold."""
    if line.state is not LineState.RUNNING:
        return line
    return CardLine(line.key, f"{line.title} (cut short)", LineState.NOTED, None, line.detail)


def preview(given: Mapping[str, Json], longest: int = 120) -> str:
    """A call's input in one short line."""
    parts = [
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in given.items()
    ]
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

"""How turns end: the one table from which every ledger reads. Adding a reason means adding a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a turn ended."""

    COMPLETED = "completed"
    EMPTY = "empty"
    STEERED = "steered"
    DRAINED = "drained"
    DISPATCHED = "dispatched"
    AWAITING = "awaiting"
    PARKED = "parked"
    STOPPED = "stopped"
    OVER_BUDGET = "over_budget"
    FAILED = "failed"
    STALE = "stale"


class Afterwards(StrEnum):
    """What the conversation does next."""

    IDLE = "idle"
    IDLE_WITH_NOTE = "idle_with_note"
    NEXT_TURN = "next_turn"  # at once, with the steer
    RESUMED = "resumed"  # by whichever worker takes it
    WAKES = "wakes"  # on another event


class AutomationResult(StrEnum):
    """What the automation ledger books."""

    SUCCESS = "success"
    NO_ANSWER = "no answer"
    STOPPED = "stopped"
    FAILED = "failed"
    NOT_WRITTEN = "not written"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. None stands for "says nothing", which is not "no"."""

    answered: bool | None
    final_event: bool
    remediation: bool
    diagnosis: bool | None
    automation: AutomationResult
    afterwards: Afterwards


A, B = AutomationResult, Afterwards

#                                     answered  final  remedy  diagnosis  automation      afterwards
REASONS: Mapping[Reason, Row] = {
    Reason.COMPLETED:   Row(True,  True,  False, None,  A.SUCCESS,     B.IDLE),
    Reason.EMPTY:       Row(False, False, True,  True,  A.NO_ANSWER,   B.IDLE_WITH_NOTE),
    Reason.STEERED:     Row(None,  False, False, False, A.NOT_WRITTEN, B.NEXT_TURN),
    Reason.DRAINED:     Row(None,  False, False, False, A.NOT_WRITTEN, B.RESUMED),
    Reason.DISPATCHED:  Row(None,  False, False, False, A.NOT_WRITTEN, B.WAKES),
    Reason.AWAITING:    Row(None,  False, False, False, A.NOT_WRITTEN, B.WAKES),
    Reason.PARKED:      Row(None,  False, False, False, A.NOT_WRITTEN, B.WAKES),
    Reason.STOPPED:     Row(None,  False, False, False, A.STOPPED,     B.IDLE),
    Reason.OVER_BUDGET: Row(False, False, False, None,  A.FAILED,      B.IDLE_WITH_NOTE),
    Reason.FAILED:      Row(False, False, False, None,  A.FAILED,      B.IDLE_WITH_NOTE),
    Reason.STALE:       Row(None,  False, False, None,  A.NOT_WRITTEN, B.RESUMED),
}  # fmt: skip

ENDS_FOR_GOOD = frozenset({Reason.COMPLETED, Reason.EMPTY, Reason.STOPPED, Reason.FAILED, Reason.OVER_BUDGET})


def goes_on(reason: Reason) -> bool:
    """Whether the work of a turn that ended so goes on in another turn by itself."""
    return REASONS[reason].afterwards in (Afterwards.NEXT_TURN, Afterwards.RESUMED)


def needs_final_event(reason: Reason) -> bool:
    """Whether a settle record with this reason must name a final message, and only then may."""
    return REASONS[reason].final_event

"""After a crash: what becomes of each call of a batch that a dead turn left open.

Rule: a side-effecting call is started at most once. One never marked started is "not executed", one marked
started without a result is "outcome unknown"; neither is repeated by us.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from core.tools import CallResult, ToolClass, not_executed, outcome_unknown


class CallState(StrEnum):
    """How far a call has come, by the records."""

    ISSUED = "issued"  # committed, never marked started
    STARTED = "started"  # marked started, no result
    DONE = "done"  # has its result


class Resumption(StrEnum):
    """What the successor of a dead turn does with a call."""

    REUSE = "reuse"
    RUN_AGAIN = "run_again"
    CLOSE_NOT_EXECUTED = "close_not_executed"
    CLOSE_UNKNOWN = "close_unknown"


RESUMPTION: Mapping[tuple[ToolClass, CallState], Resumption] = {
    (ToolClass.READ_ONLY, CallState.ISSUED): Resumption.RUN_AGAIN,
    (ToolClass.READ_ONLY, CallState.STARTED): Resumption.RUN_AGAIN,
    (ToolClass.READ_ONLY, CallState.DONE): Resumption.REUSE,
    (ToolClass.IDEMPOTENT, CallState.ISSUED): Resumption.RUN_AGAIN,
    (ToolClass.IDEMPOTENT, CallState.STARTED): Resumption.RUN_AGAIN,
    (ToolClass.IDEMPOTENT, CallState.DONE): Resumption.REUSE,
    (ToolClass.SIDE_EFFECT, CallState.ISSUED): Resumption.CLOSE_NOT_EXECUTED,
    (ToolClass.SIDE_EFFECT, CallState.STARTED): Resumption.CLOSE_UNKNOWN,
    (ToolClass.SIDE_EFFECT, CallState.DONE): Resumption.REUSE,
}


def on_resume(tool_class: ToolClass, state: CallState) -> Resumption:
    """What the successor does with a call of this class that was left in this state."""
    return RESUMPTION[tool_class, state]


def closed_unrun(state: CallState) -> CallResult:
    """The truth about a call that is closed without running anything again."""
    if state is CallState.ISSUED:
        return not_executed("the worker was lost before this call was sent")
    return outcome_unknown()


LOST_TURNS_LIMIT = 3
"""Three lost turns in a row between which nothing was committed settle `failed`."""


def gives_up(lost_in_a_row: int) -> bool:
    """Whether one more lost turn is too many; `lost_in_a_row` includes the one being settled."""
    return lost_in_a_row >= LOST_TURNS_LIMIT

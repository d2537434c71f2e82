"""What becomes of a call that a dead turn left: a side effect is started at most once."""

from itertools import product

import pytest

from core.resume import (
    LOST_TURNS_LIMIT,
    RESUMPTION,
    CallState,
    Resumption,
    closed_unrun,
    gives_up,
    on_resume,
)
from core.tools import Outcome, ToolClass


def test_every_class_and_state_has_its_row() -> None:
    assert set(RESUMPTION) == set(product(ToolClass, CallState))


@pytest.mark.parametrize("state", CallState)
def test_a_side_effect_is_never_run_again(state: CallState) -> None:
    assert on_resume(ToolClass.SIDE_EFFECT, state) is not Resumption.RUN_AGAIN


@pytest.mark.parametrize("tool_class", ToolClass)
def test_a_result_that_was_recorded_is_used(tool_class: ToolClass) -> None:
    assert on_resume(tool_class, CallState.DONE) is Resumption.REUSE


@pytest.mark.parametrize(
    "tool_class, state",
    [*product([ToolClass.READ_ONLY, ToolClass.IDEMPOTENT], [CallState.ISSUED, CallState.STARTED])],
)
def test_what_may_be_repeated_is_run_again(tool_class: ToolClass, state: CallState) -> None:
    assert on_resume(tool_class, state) is Resumption.RUN_AGAIN


def test_a_side_effect_that_was_never_sent_is_not_executed_and_one_that_was_is_unknown() -> None:
    assert on_resume(ToolClass.SIDE_EFFECT, CallState.ISSUED) is Resumption.CLOSE_NOT_EXECUTED
    assert on_resume(ToolClass.SIDE_EFFECT, CallState.STARTED) is Resumption.CLOSE_UNKNOWN
    assert closed_unrun(CallState.ISSUED).outcome is Outcome.NOT_EXECUTED
    assert closed_unrun(CallState.STARTED).outcome is Outcome.UNKNOWN


def test_what_is_closed_unrun_says_what_is_known_and_no_more() -> None:
    assert closed_unrun(CallState.STARTED).text == (
        "outcome unknown: the worker was lost while this call ran"
    )
    assert closed_unrun(CallState.ISSUED).text == (
        "not executed: the worker was lost before this call was sent"
    )


def test_the_third_lost_turn_in_a_row_is_the_last() -> None:
    assert LOST_TURNS_LIMIT == 3
    assert [gives_up(lost) for lost in (1, 2, 3, 4)] == [False, False, True, True]

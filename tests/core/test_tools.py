"""A tool may be overridden within the rules, and a call's result says what is known and no more."""

import pytest

from core.tools import (
    CallResult,
    Outcome,
    ToolClass,
    ToolOverride,
    ToolSpec,
    asked_to_stop,
    not_executed,
    outcome_unknown,
    overridden,
    stopped,
    timed_out,
)

READER = ToolSpec(
    "logs", "Reads logs.", {}, ToolClass.READ_ONLY, interruptible=True, timeout_s=10, max_bytes=100
)


def test_an_unknown_tool_is_taken_to_have_side_effects() -> None:
    assert ToolSpec("x", "", {}).tool_class is ToolClass.SIDE_EFFECT
    assert not ToolSpec("x", "", {}).interruptible


def test_an_empty_override_changes_nothing() -> None:
    assert overridden(READER, ToolOverride()) == READER


def test_an_override_changes_what_it_names_and_nothing_else() -> None:
    spec = overridden(READER, ToolOverride(interruptible=False, timeout_s=20, max_bytes=200))
    assert (spec.interruptible, spec.timeout_s, spec.max_bytes) == (False, 20, 200)
    assert (spec.name, spec.tool_class) == (READER.name, READER.tool_class)


@pytest.mark.parametrize("tool_class", [ToolClass.IDEMPOTENT, ToolClass.SIDE_EFFECT])
def test_a_tool_that_is_said_to_write_is_no_longer_interruptible(tool_class: ToolClass) -> None:
    assert not overridden(READER, ToolOverride(tool_class=tool_class)).interruptible


@pytest.mark.parametrize("tool_class", [ToolClass.IDEMPOTENT, ToolClass.SIDE_EFFECT])
def test_a_writing_tool_cannot_be_made_interruptible(tool_class: ToolClass) -> None:
    with pytest.raises(ValueError, match=r"tools\.logs: only a read_only tool may be interruptible"):
        overridden(READER, ToolOverride(tool_class=tool_class, interruptible=True))


@pytest.mark.parametrize(
    "result, words",
    [
        (stopped(3.21, ""), "stopped after 3.2 s"),
        (stopped(3.21, "line 1"), "stopped after 3.2 s\nWhat it had so far:\nline 1"),
        (asked_to_stop(3.2, ""), "asked to stop after 3.2 s, may have gone on"),
        (timed_out(30, ""), "no answer within 30 s, may still be running"),
        (timed_out(2.5, "x"), "no answer within 2.5 s, may still be running\nWhat it had so far:\nx"),
        (not_executed("a stop came first"), "not executed: a stop came first"),
        (outcome_unknown(), "outcome unknown: the worker was lost while this call ran"),
    ],
)
def test_a_result_says_what_is_known_and_no_more(result: CallResult, words: str) -> None:
    assert result.text == words


def test_every_outcome_but_success_is_told_to_the_model_as_an_error() -> None:
    assert {o for o in Outcome if not CallResult(o, "").is_error} == {Outcome.OK}

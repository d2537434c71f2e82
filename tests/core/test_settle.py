"""Each ending is built in one place, and of two that are claimed the right one stands."""

from __future__ import annotations

from itertools import product

import pytest

from core import settle
from core.history import Text, assistant
from core.reasons import Reason, needs_final_event
from core.settle import Ending, Mark
from core.signals import STAMP, Held, Signal

TEXT = assistant(Text("the deploy removed an index"))
STOP = Mark(Reason.STOPPED, "U1")
ENDINGS = [
    settle.completed(TEXT),
    settle.empty(),
    settle.failed("no model"),
    settle.lay_too_long(7200),
    *(settle.cut(Held(signal, "U2")) for signal in Signal),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.reason)
def test_only_what_ends_of_its_own_accord_can_be_overtaken(ending: Ending) -> None:
    assert ending.conditional is (ending.reason in {Reason.COMPLETED, Reason.EMPTY, Reason.FAILED})


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.reason)
def test_an_ending_that_needs_a_final_message_brings_it(ending: Ending) -> None:
    assert (ending.message is not None) is needs_final_event(ending.reason)


@pytest.mark.parametrize("signal", Signal)
def test_a_cut_names_its_signal_and_who_raised_it(signal: Signal) -> None:
    ending = settle.cut(Held(signal, "U2"))
    told = settle.STOPPED if signal is Signal.STOP else None
    assert (ending.reason, ending.by, ending.note) == (STAMP[signal], "U2", told)


def test_a_final_text_that_a_steer_overtook_is_kept_and_told_as_a_note() -> None:
    ending = settle.cut(Held(Signal.STEER, "U2"), overtaken=TEXT)
    assert ending.reason is Reason.STEERED
    assert ending.message == TEXT
    assert ending.note == "What I had when you wrote:\n\nthe deploy removed an index"


def test_a_failure_says_why_and_how_to_try_again() -> None:
    ending = settle.failed("the model could not be reached")
    assert ending.cause == "the model could not be reached"
    assert ending.note is not None
    assert "the model could not be reached" in ending.note
    assert "try again" in ending.note


def test_an_empty_end_is_told_and_is_no_failure() -> None:
    assert settle.empty().note
    assert settle.empty().cause is None


@pytest.mark.parametrize(
    "seconds, words", [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (3600, "60 min"), (7200, "2 h")]
)
def test_a_span_of_time_is_said_in_the_unit_that_people_would_use(seconds: float, words: str) -> None:
    assert settle.spoken(seconds) == words


STAMPED = Mark(Reason.STEERED, "U2")


@pytest.mark.parametrize(
    "tombstone, stamp, too_often, reason",
    [
        (None, None, False, Reason.STALE),
        (None, None, True, Reason.FAILED),
        (None, STAMPED, False, Reason.STEERED),
        (None, STAMPED, True, Reason.STEERED),
        (STOP, None, False, Reason.STOPPED),
        (STOP, None, True, Reason.STOPPED),
        (STOP, STAMPED, False, Reason.STOPPED),
        (STOP, STAMPED, True, Reason.STOPPED),
    ],
)
def test_of_a_dead_turn_the_tombstone_speaks_first_then_the_stamp(
    tombstone: Mark | None, stamp: Mark | None, too_often: bool, reason: Reason
) -> None:
    ending = settle.of_dead_turn(tombstone, stamp, lost_too_often=too_often)
    assert ending.reason is reason
    mark = tombstone or stamp
    assert ending.by == (mark.by if mark else None)


@pytest.mark.parametrize("claimed, tombstone", [*product(ENDINGS, [None, STOP])])
def test_a_stop_goes_before_any_other_ending_and_nothing_else_changes_one(
    claimed: Ending, tombstone: Mark | None
) -> None:
    standing = settle.in_force(claimed, tombstone)
    if tombstone is None or claimed.reason is Reason.STOPPED:
        assert standing == claimed
    else:
        assert (standing.reason, standing.by) == (Reason.STOPPED, "U1")
        assert standing.message == claimed.message
        assert standing.note == (claimed.note if claimed.message is not None else settle.STOPPED)

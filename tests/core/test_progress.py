"""The words of a card: what is being done while it lives, and only what has been once it is released."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.card import CardState, LineState
from core.progress import OUTCOME_WORDS, RELEASED, CallFacts, TurnFacts, card_of, preview, shrinks
from core.reasons import Reason
from core.resume import CallState
from core.tools import Outcome
from core.usage import Usage

NOW = 1_000.0


def turn(
    reason: Reason | None = None,
    *,
    steps: int = 1,
    activity: str = "",
    ended_by: str | None = None,
    cause: str | None = None,
    stopping_for: str | None = None,
    steered_now_by: str | None = None,
) -> TurnFacts:
    return TurnFacts(
        "turn_1", "why is checkout slow?", 900.0, steps, activity, reason, ended_by, cause,
        None if reason is None else 990.0, stopping_for, steered_now_by,
    )  # fmt: skip


def call(
    number: int = 1,
    state: CallState = CallState.STARTED,
    *,
    tool: str = "logs",
    limit_s: float = 30.0,
    started_at: float | None = 995.0,
    outcome: Outcome | None = None,
) -> CallFacts:
    finished = 997.5 if state is CallState.DONE else None
    return CallFacts(
        f"call_{number}", number, tool, {"query": "p99"}, state, limit_s, started_at, finished, outcome
    )


def done(outcome: Outcome) -> CallFacts:
    return call(state=CallState.DONE, outcome=outcome)


def headline(facts: TurnFacts, *calls: CallFacts) -> str:
    return card_of(facts, calls, Usage(), [], NOW).headline


def activity(facts: TurnFacts, *calls: CallFacts) -> str:
    return card_of(facts, calls, Usage(), [], NOW).activity


# --- live -----------------------------------------------------------------------------------------------


def test_a_live_card_says_what_it_does_and_can_be_stopped() -> None:
    card = card_of(turn(), [call()], Usage(), ["Ben", "Ana", "Ben"], NOW)
    assert (card.state, card.reason, card.stoppable, card.shrunk) == (CardState.LIVE, None, True, False)
    assert card.headline == "Investigating"
    assert card.activity == "Running logs"
    assert card.steered_by == ("Ben", "Ana")
    assert card.updated_at == NOW


def test_without_calls_it_thinks_or_does_what_the_model_says_that_it_does() -> None:
    assert activity(turn()) == "Thinking"
    assert activity(turn(activity="Overloaded, try 2 in 4 s")) == "Overloaded, try 2 in 4 s"


def test_many_tools_are_named_once_each_and_the_rest_in_one_word() -> None:
    calls = [call(number, tool=tool) for number, tool in enumerate(["logs", "logs", "a", "b", "c"], 1)]
    assert activity(turn(), *calls) == "Running logs, a, b and more"


def test_a_stop_says_what_it_waits_for_and_how_long_at_most() -> None:
    stopping = turn(stopping_for="Ana")
    calls = [call(1, limit_s=10), call(2, limit_s=30), done(Outcome.OK)]
    assert headline(stopping, *calls) == "Stopping: 2 calls, at most 25 s"
    assert headline(stopping, call()) == "Stopping: 1 call, at most 25 s"
    assert headline(stopping, call(limit_s=1)) == "Stopping: 1 call, at most 1 s"
    assert headline(stopping) == "Stopping: at the next safe point"


def test_a_call_that_was_not_sent_yet_has_its_whole_limit_before_it() -> None:
    issued = call(state=CallState.ISSUED, started_at=None, limit_s=30)
    assert headline(turn(stopping_for="Ana"), issued) == "Stopping: 1 call, at most 30 s"


def test_a_steer_says_who_wrote_and_what_it_waits_for() -> None:
    steered = turn(steered_now_by="Ben")
    assert headline(steered, call()) == "Ben wrote: 1 call, at most 25 s"
    assert headline(steered) == "Ben wrote: at the next safe point"


def test_a_stop_is_shown_before_a_steer_and_cannot_be_asked_for_twice() -> None:
    facts = turn(stopping_for="Ana", steered_now_by="Ben")
    assert headline(facts).startswith("Stopping")
    assert not card_of(facts, [], Usage(), [], NOW).stoppable


def test_a_line_shows_the_number_the_tool_its_input_and_how_long_it_runs() -> None:
    [line] = card_of(turn(), [call(7)], Usage(), [], NOW).lines
    assert (line.title, line.detail, line.state, line.seconds) == (
        "c7 logs",
        "query=p99",
        LineState.RUNNING,
        5.0,
    )


# --- released -------------------------------------------------------------------------------------------


def test_every_reason_has_its_headline_and_every_outcome_its_words() -> None:
    assert set(RELEASED) == set(Reason)
    assert set(OUTCOME_WORDS) == set(Outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_call_that_came_back_says_how_and_how_long_it_took(outcome: Outcome) -> None:
    [line] = card_of(turn(Reason.COMPLETED), [done(outcome)], Usage(), [], NOW).lines
    assert line.seconds == 2.5
    assert line.state is (LineState.DONE if outcome is Outcome.OK else LineState.NOTED)
    assert OUTCOME_WORDS[outcome] in line.title


def test_a_cut_names_who_caused_it_and_a_failure_its_cause() -> None:
    assert headline(turn(Reason.STEERED, ended_by="Ben")) == "Steered by Ben"
    assert headline(turn(Reason.STOPPED, ended_by="Ana")) == "Stopped by Ana"
    assert headline(turn(Reason.STOPPED)) == "Stopped by somebody"
    assert headline(turn(Reason.FAILED, cause="no model")) == "Failed: no model"


IN_PROGRESS = re.compile(r"\b(running|investigating|thinking|stopping|wrote:|at most|try \d)", re.IGNORECASE)

CALLS = st.builds(
    call,
    st.integers(1, 9),
    st.sampled_from(CallState),
    started_at=st.one_of(st.none(), st.just(995.0)),
    outcome=st.one_of(st.none(), st.sampled_from(Outcome)),
)


@given(
    reason=st.sampled_from(Reason),
    calls=st.lists(CALLS, max_size=4),
    stopping_for=st.one_of(st.none(), st.just("Ana")),
    steered_now_by=st.one_of(st.none(), st.just("Ben")),
)
def test_a_released_card_never_says_that_something_runs(
    reason: Reason, calls: list[CallFacts], stopping_for: str | None, steered_now_by: str | None
) -> None:
    facts = turn(reason, activity="Running logs", stopping_for=stopping_for, steered_now_by=steered_now_by)
    card = card_of(facts, calls, Usage(), [], NOW)
    assert card.state is CardState.RELEASED
    assert not card.stoppable
    assert card.activity == ""
    assert not IN_PROGRESS.search(card.headline)
    for line in card.lines:
        assert line.state is not LineState.RUNNING
        assert not IN_PROGRESS.search(line.title)


def test_a_released_card_stands_still() -> None:
    early = card_of(turn(Reason.STOPPED), [call()], Usage(), [], 991.0)
    late = card_of(turn(Reason.STOPPED), [call()], Usage(), [], 5_000.0)
    assert early == late


def test_only_the_card_of_a_steered_turn_that_leaves_it_behind_shrinks() -> None:
    assert {reason for reason in Reason if shrinks(reason, steps=1)} == {Reason.STEERED}
    assert not shrinks(Reason.STEERED, steps=0)


def test_an_input_is_one_line_of_bounded_length() -> None:
    assert preview({"q": "a\n  b", "n": 3, "deep": {"x": [1]}}) == 'q=a b n=3 deep={"x": [1]}'
    assert len(preview({"q": "x" * 500})) == 120
    assert preview({}) == ""

"""A turn is cut only at a safe point, ends once, and never asks for two things that exclude each other."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from core import turn as rules
from core.effects import AskModel, BreakOff, CloseBatch, Commit, Hurry, Probe, RunCalls, Settle, Wait
from core.errors import RuleBroken
from core.events import (
    BatchClosed,
    Began,
    BellRang,
    CallReturned,
    CommitRefused,
    Committed,
    Input,
    LimitReached,
    ModelAnswered,
    ModelFailed,
    Probed,
    Settled,
    SettleRefused,
    Waited,
)
from core.generation import StopReason
from core.history import Call, Text, assistant
from core.reasons import Reason
from core.signals import Held, Signal
from core.turn import PAUSES_LIMIT, RULES, Phase, Turn
from tests.core.turns import World, answer, asks_for, fails, said

P = Phase
EVERYWHERE = frozenset(Phase) - {P.SETTLED}

HAPPENS: dict[type, tuple[frozenset[Phase], str]] = {
    Began: (frozenset({P.STARTING}), "a turn begins once"),
    BellRang: (EVERYWHERE, "anybody may ring at any time; nobody listens after the settle record"),
    LimitReached: (EVERYWHERE, "time passes everywhere, until the settle record"),
    Probed: (
        frozenset({P.AT_SAFE_POINT, P.GENERATING, P.WAITING, P.ACTING, P.BALANCED}),
        "the answer to a probe comes before any other fact, so only where one is asked for",
    ),
    ModelAnswered: (frozenset({P.GENERATING}), "one request at a time, and a broken-off one is not heard"),
    ModelFailed: (frozenset({P.GENERATING}), "as its answer"),
    Waited: (frozenset({P.WAITING}), "one wait at a time, and a broken-off one is not heard"),
    Committed: (frozenset({P.COMMITTING}), "answers the commit"),
    CommitRefused: (frozenset({P.COMMITTING}), "answers the commit"),
    CallReturned: (frozenset({P.ACTING}), "calls run only in a batch that is not balanced yet"),
    BatchClosed: (frozenset({P.CLOSING}), "answers the close"),
    SettleRefused: (frozenset({P.SETTLING}), "answers the settle"),
    Settled: (frozenset({P.SETTLING}), "answers the settle"),
}


def test_the_table_has_a_row_for_whatever_can_happen_and_no_other() -> None:
    assert set(HAPPENS) == set(get_args(Input))
    assert set(RULES) == {(phase, fact) for fact, (phases, _) in HAPPENS.items() for phase in phases}


FACTS: list[Input] = [
    Began(),
    BellRang(),
    LimitReached("too long"),
    Probed(None),
    answer(),
    fails(),
    Waited(),
    Committed(()),
    CommitRefused(Held(Signal.STOP, "U1")),
    CallReturned("a"),
    BatchClosed(),
    SettleRefused(Held(Signal.STOP, "U1")),
    Settled(),
]


@pytest.mark.parametrize(
    "phase, fact", [(p, f) for p, f in product(Phase, FACTS) if p not in HAPPENS[type(f)][0]]
)
def test_a_fact_that_cannot_happen_is_an_error_that_names_both(phase: Phase, fact: Input) -> None:
    with pytest.raises(RuleBroken, match=f"{type(fact).__name__} while {phase}"):
        rules.decide(Turn(phase), fact)


# --- a step ---------------------------------------------------------------------------------------------


def test_a_turn_without_interruptions_asks_commits_runs_closes_and_completes() -> None:
    world = World().begin().give(asks_for("a", "b")).give(CallReturned("b")).give(CallReturned("a"))
    world.give(answer())
    kinds = [type(effect) for effect in world.done]
    assert kinds == [
        Probe, AskModel, Commit, RunCalls, Probe, Probe, CloseBatch, Probe, AskModel, Settle,
    ]  # fmt: skip
    assert world.reason is Reason.COMPLETED


def test_the_batch_reaches_its_safe_point_only_with_the_last_result() -> None:
    world = World().begin().give(asks_for("a", "b")).give(CallReturned("a"))
    assert world.stands(Phase.ACTING)
    assert world.asked(CloseBatch) == 0
    world.give(CallReturned("b"))
    assert world.stands(Phase.GENERATING)


def test_a_second_result_for_a_call_closes_nothing() -> None:
    world = World().begin().give(asks_for("a", "b")).give(CallReturned("a")).give(CallReturned("a"))
    assert world.stands(Phase.ACTING)
    assert len(world.turn.balance.faults) == 1


def test_a_batch_whose_calls_all_have_their_result_is_closed_at_once() -> None:
    turn = Turn(Phase.COMMITTING)
    turn, effects = rules.decide(turn, Committed(()))
    assert (turn.phase, effects) == (Phase.BALANCED, (Probe(),))


def test_the_batch_of_a_lost_worker_is_run_before_anything_is_asked() -> None:
    world = World().begin(("a",))
    assert world.asked(AskModel) == 0
    world.give(CallReturned("a"))
    assert [type(effect) for effect in world.done] == [RunCalls, Probe, Probe, CloseBatch, Probe, AskModel]


def test_the_batch_of_a_lost_worker_with_all_its_results_is_closed_before_anything_is_asked() -> None:
    world = World().begin(())
    assert [type(effect) for effect in world.done] == [Probe, CloseBatch, Probe, AskModel]


# --- signals at every point of a step -------------------------------------------------------------------

POINTS = ["before the request", "while it generates", "at its commit", "while calls run", "at balance zero"]


def interrupted(point: str, signal: Signal) -> World:
    """A step with two calls in which a signal is raised at this point and the bell is rung."""
    world = World()
    if point == "before the request":
        return world.raise_(signal).begin()
    world.begin()
    if point == "while it generates":
        return world.raise_(signal).give(BellRang())
    if point == "at its commit":
        return world.raise_(signal).give(asks_for("a", "b"))
    world.give(asks_for("a", "b"))
    if point == "while calls run":
        world.raise_(signal).give(BellRang()).give(CallReturned("a"))
        assert world.settled is False
        return world.give(CallReturned("b"))
    world.give(CallReturned("a")).raise_(signal)
    return world.give(CallReturned("b"))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "signal, reason",
    [(Signal.STOP, Reason.STOPPED), (Signal.STEER, Reason.STEERED), (Signal.DRAIN, Reason.DRAINED)],
)
def test_a_signal_cuts_the_turn_at_the_next_safe_point(point: str, signal: Signal, reason: Reason) -> None:
    world = interrupted(point, signal)
    if (point, signal) == ("at its commit", Signal.DRAIN):  # no decision of anybody: calls may be opened
        assert world.stands(Phase.ACTING)
        world.give(CallReturned("a")).give(CallReturned("b"))
    assert world.reason is reason
    assert world.ending is not None
    assert world.ending.by == "U1"


@pytest.mark.parametrize("signal", [Signal.STEER, Signal.STOP])
def test_no_call_is_opened_after_a_steer_or_stop_was_decided(signal: Signal) -> None:
    assert interrupted("at its commit", signal).ran == 0
    assert interrupted("while it generates", signal).asked(Commit) == 0


@pytest.mark.parametrize("point", ["while it generates", "at its commit"])
def test_a_cut_that_throws_words_away_says_so(point: str) -> None:
    ending = interrupted(point, Signal.STEER).ending
    assert ending is not None
    assert ending.discarded


@pytest.mark.parametrize("point", ["before the request", "while calls run", "at balance zero"])
def test_a_cut_between_two_steps_throws_nothing_away(point: str) -> None:
    ending = interrupted(point, Signal.STEER).ending
    assert ending is not None
    assert not ending.discarded


@pytest.mark.parametrize("protected", [True, False])
def test_a_steer_between_two_tries_cuts_and_throws_nothing_away(protected: bool) -> None:
    world = World(Turn(protected=protected)).begin().give(fails())
    assert world.stands(Phase.WAITING)
    world.raise_(Signal.STEER).give(BellRang())
    assert world.reason is Reason.STEERED
    assert world.ending is not None
    assert not world.ending.discarded


@pytest.mark.parametrize("point", ["while calls run", "at balance zero"])
def test_the_cut_of_a_batch_is_stamped_when_the_batch_is_closed(point: str) -> None:
    world = interrupted(point, Signal.STEER)
    assert [e.stamp for e in world.done if isinstance(e, CloseBatch)] == [Held(Signal.STEER, "U1")]


def test_a_stop_goes_before_a_steer_that_came_first() -> None:
    world = World().begin().give(asks_for("a")).raise_(Signal.STEER, "Ben").give(BellRang())
    world.raise_(Signal.STOP, "Ana").give(BellRang()).give(CallReturned("a"))
    assert world.reason is Reason.STOPPED
    assert [e.held for e in world.done if isinstance(e, Hurry)] == [
        Held(Signal.STEER, "Ben"),
        Held(Signal.STOP, "Ana"),
    ]


def test_tools_are_hurried_once_for_a_signal_however_often_it_rings() -> None:
    world = World().begin().give(asks_for("a")).raise_(Signal.STEER)
    world.give(BellRang()).give(BellRang()).give(BellRang())
    assert world.asked(Hurry) == 1


def test_a_signal_during_the_commit_hurries_the_batch_as_soon_as_it_runs() -> None:
    world = World().begin().raise_(Signal.DRAIN).give(asks_for("a"))
    assert world.asked(Hurry) == 1


@pytest.mark.parametrize("phase", [P.STARTING, P.COMMITTING, P.BALANCED, P.CLOSING, P.SETTLING])
def test_a_bell_does_nothing_where_a_probe_comes_anyway(phase: Phase) -> None:
    assert rules.decide(Turn(phase), BellRang()) == (Turn(phase), ())


def test_a_spurious_bell_breaks_nothing_off() -> None:
    world = World().begin().give(BellRang()).give(BellRang())
    assert world.asked(BreakOff) == 0
    assert world.stands(Phase.GENERATING)


def test_a_bell_that_rings_during_the_probe_before_a_request_makes_it_look_again() -> None:
    world = World()
    world.feed(Began())
    world.feed(BellRang())
    world.pay()
    assert world.asked(Probe) == 2
    assert world.asked(AskModel) == 0


# --- ends of its own accord -----------------------------------------------------------------------------


@pytest.mark.parametrize("signal", [Signal.STEER, Signal.STOP])
def test_a_steer_is_never_lost_to_a_finished_answer(signal: Signal) -> None:
    world = World().begin().raise_(signal, "Ben").give(answer("it was the deploy"))
    assert world.ending is not None
    assert (world.ending.by, world.ending.message) == ("Ben", assistant(Text("it was the deploy")))
    assert world.reason is {Signal.STEER: Reason.STEERED, Signal.STOP: Reason.STOPPED}[signal]


def test_a_drain_does_not_keep_a_finished_answer_back() -> None:
    assert World().begin().raise_(Signal.DRAIN).give(answer()).reason is Reason.COMPLETED


@pytest.mark.parametrize("words", ["", "  \n"])
def test_an_end_without_a_word_is_empty_and_no_answer(words: str) -> None:
    world = World().begin().give(answer(words))
    assert world.reason is Reason.EMPTY


def test_an_empty_end_is_overtaken_by_a_steer_as_an_answer_is() -> None:
    world = World().begin().raise_(Signal.STEER).give(answer(""))
    assert world.reason is Reason.STEERED
    assert world.ending is not None
    assert world.ending.note is None


def test_a_refusal_fails_and_says_so() -> None:
    world = World().begin().give(said(Call("a", "logs", {}), stop=StopReason.REFUSAL))
    assert world.reason is Reason.FAILED
    assert world.ending is not None
    assert "refused" in (world.ending.cause or "")
    assert world.ran == 0


def test_a_text_that_ran_into_its_length_limit_is_an_answer_that_says_so() -> None:
    world = World().begin().give(answer("half a", StopReason.LENGTH))
    assert world.reason is Reason.COMPLETED
    assert world.ending is not None
    assert world.ending.cut_off


def test_a_conversation_that_has_become_too_long_fails_and_says_so() -> None:
    world = World().begin().give(answer("", StopReason.CONTEXT_FULL))
    assert world.reason is Reason.FAILED
    assert world.ending is not None
    assert "too long" in (world.ending.cause or "")


def test_calls_are_run_whatever_the_model_says_it_stopped_for() -> None:
    for stop in (StopReason.END, StopReason.LENGTH, StopReason.PAUSE, StopReason.UNKNOWN):
        assert World().begin().give(asks_for("a", stop=stop)).ran == 1


# --- pauses and failures --------------------------------------------------------------------------------


def test_a_paused_model_is_asked_to_go_on_and_its_words_are_joined() -> None:
    world = World().begin().give(answer("first ", StopReason.PAUSE))
    assert world.done[-1] == AskModel(assistant(Text("first ")))
    world.give(answer("second"))
    assert world.ending is not None
    assert world.ending.message == assistant(Text("first "), Text("second"))


def test_a_model_that_only_pauses_fails() -> None:
    world = World().begin()
    for _ in range(PAUSES_LIMIT):
        assert world.reason is None
        world.give(answer("hm", StopReason.PAUSE))
    assert world.reason is None
    world.give(answer("hm", StopReason.PAUSE))
    assert world.reason is Reason.FAILED


def test_pauses_are_counted_for_each_step_anew() -> None:
    world = World().begin()
    for step in range(PAUSES_LIMIT + 2):
        world.give(answer("hm", StopReason.PAUSE)).give(asks_for(f"c{step}")).give(CallReturned(f"c{step}"))
    assert world.reason is None


def test_what_a_pause_left_is_not_sent_again_once_it_is_committed() -> None:
    world = World().begin().give(answer("hm", StopReason.PAUSE)).give(asks_for("a")).give(CallReturned("a"))
    assert world.done[-1] == AskModel(None)


def test_a_temporary_failure_is_waited_out_and_tried_again() -> None:
    world = World().begin().give(fails(cause="overloaded"))
    [wait] = [effect for effect in world.done if isinstance(effect, Wait)]
    assert (wait.cause, wait.next_try) == ("overloaded", 2)
    world.give(Waited())
    assert world.asked(AskModel) == 2
    assert world.give(answer()).reason is Reason.COMPLETED


def test_the_number_of_tries_starts_anew_with_every_answer() -> None:
    world = World().begin().give(fails()).give(Waited()).give(asks_for("a")).give(CallReturned("a"))
    world.give(fails())
    assert [effect.next_try for effect in world.done if isinstance(effect, Wait)] == [2, 2]


def test_a_failure_that_lasts_ends_the_turn_with_its_cause() -> None:
    world = World(Turn(retry_for_s=5)).begin().give(fails(waited_s=5, cause="overloaded"))
    assert world.reason is Reason.FAILED
    assert world.ending is not None
    assert world.ending.cause == "overloaded"


def test_a_failure_that_trying_again_will_not_mend_ends_the_turn_at_once() -> None:
    world = World().begin().give(fails(temporary=False))
    assert world.reason is Reason.FAILED
    assert world.asked(Wait) == 0


@pytest.mark.parametrize("signal", [Signal.STOP, Signal.STEER, Signal.DRAIN])
def test_a_wait_between_two_tries_is_a_safe_point(signal: Signal) -> None:
    world = World().begin().give(fails()).raise_(signal).give(BellRang())
    assert world.settled
    assert world.asked(AskModel) == 1


# --- the protected generation ---------------------------------------------------------------------------


def protected() -> World:
    return World(Turn(protected=True))


def test_a_protected_generation_runs_past_a_steer_to_its_commit_and_is_cut_behind_its_batch() -> None:
    world = protected().raise_(Signal.STEER).begin().give(BellRang()).give(asks_for("a"))
    assert world.ran == 1
    world.give(CallReturned("a"))
    assert world.reason is Reason.STEERED
    assert world.asked(CloseBatch) == 1


def test_a_protected_answer_is_overtaken_and_kept() -> None:
    world = protected().begin().raise_(Signal.STEER).give(BellRang()).give(answer("mine"))
    assert world.reason is Reason.STEERED
    assert world.ending is not None
    assert world.ending.message == assistant(Text("mine"))


@pytest.mark.parametrize("signal", [Signal.STOP, Signal.DRAIN])
def test_nothing_else_is_held_up_by_the_protection(signal: Signal) -> None:
    world = protected().begin().raise_(signal).give(BellRang())
    assert world.settled
    assert world.asked(Commit) == 0


def test_a_stop_is_not_passed_at_the_commit() -> None:
    world = protected().begin().raise_(Signal.STOP).give(asks_for("a"))
    assert world.reason is Reason.STOPPED
    assert world.ran == 0


def test_the_protection_ends_with_the_step_that_it_was_for() -> None:
    world = protected().begin().give(asks_for("a")).give(CallReturned("a")).raise_(Signal.STEER)
    assert world.give(BellRang()).reason is Reason.STEERED
    assert world.asked(BreakOff) == 1


# --- the limit ------------------------------------------------------------------------------------------


def test_a_turn_past_its_limit_is_broken_off_while_it_generates() -> None:
    world = World().begin().give(LimitReached("it took too long"))
    assert world.reason is Reason.FAILED
    assert world.asked(BreakOff) == 1
    assert world.ending is not None
    assert world.ending.cause == "it took too long"


def test_a_turn_past_its_limit_waits_for_its_calls_hurries_them_and_fails() -> None:
    world = World().begin().give(asks_for("a", "b")).give(LimitReached("it took too long"))
    assert world.asked(Hurry) == 1
    world.give(CallReturned("a"))
    assert not world.settled
    world.give(CallReturned("b"))
    assert world.reason is Reason.FAILED
    assert world.asked(AskModel) == 1


def test_calls_that_are_opened_after_the_limit_are_hurried_from_the_start() -> None:
    world = World().begin()
    world.feed(asks_for("a"))
    world.feed(LimitReached("it took too long"))
    world.give(BellRang())
    assert world.asked(Hurry) == 1
    assert world.give(CallReturned("a")).reason is Reason.FAILED


@pytest.mark.parametrize("signal, reason", [(Signal.STOP, Reason.STOPPED), (Signal.STEER, Reason.STEERED)])
def test_a_signal_goes_before_the_doom(signal: Signal, reason: Reason) -> None:
    world = World().begin().give(asks_for("a")).give(LimitReached("late")).raise_(signal)
    assert world.give(CallReturned("a")).reason is reason

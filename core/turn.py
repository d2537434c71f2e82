"""The decisions of a running turn: `decide(turn, input) -> effects`.

Rule 1: a turn is cut only at a safe point: before a request, while the model generates what is not committed
yet, and when a batch's balance has returned to zero.
Rule 2: what ends a turn is a value (`core.settle`), decided here and nowhere else.
Rule 3: a signal counts when a probe has found it; a bell only makes the turn probe.

Read `RULES` at the bottom: one row for each phase and input. A missing row is the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from core import balance as balances
from core import retry, settle
from core.balance import Answered, Balance
from core.effects import (
    AskModel,
    BreakOff,
    CloseBatch,
    Commit,
    Effect,
    Hurry,
    Probe,
    RunCalls,
    Settle,
    Wait,
)
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
from core.generation import Generated, StopReason
from core.history import Message, assistant
from core.settle import Ending
from core.signals import Held, Signal


class Phase(StrEnum):
    """Where a turn stands."""

    STARTING = "starting"
    AT_SAFE_POINT = "at_safe_point"  # a probe before a request is under way
    GENERATING = "generating"
    WAITING = "waiting"  # between two tries of a request
    COMMITTING = "committing"
    ACTING = "acting"
    BALANCED = "balanced"  # the batch is answered, a probe is under way
    CLOSING = "closing"
    SETTLING = "settling"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the decisions depend on.

    `protected`: two generations in a row were discarded for steers, so this one runs to its commit.
    `paused`: what the model had said when it paused; sent back as it was, committed with what follows.
    `doom`: why the turn must fail at its next safe point. `rang`: a bell rang while a probe was under way.
    """

    phase: Phase = Phase.STARTING
    balance: Balance = Balance()
    protected: bool = False
    hurried_for: Signal | None = None
    rang: bool = False
    tries: int = 0
    pauses: int = 0
    paused: Message | None = None
    closing_for: Held | None = None
    ending: Ending | None = None
    doom: str | None = None
    retry_for_s: float = 180.0


Decision: TypeAlias = tuple[Turn, tuple[Effect, ...]]

PAUSES_LIMIT = 5


def decide(turn: Turn, given: Input) -> Decision:
    """The turn after `given`, and what must be done now; raises RuleBroken where no rule knows the input."""
    rule = RULES.get((turn.phase, type(given)))
    if rule is None:
        raise RuleBroken(f"{type(given).__name__} while {turn.phase}")
    return rule(turn, given)


# --- the rules ----------------------------------------------------------------------------------------------


def _begin(turn: Turn, given: Began) -> Decision:
    if given.open_calls is None:
        return _to_safe_point(turn)
    return _act(turn, given.open_calls)


def _probe_or_remember(turn: Turn, _: BellRang) -> Decision:
    return replace(turn, rang=True), ()


def _probe(turn: Turn, _: BellRang) -> Decision:
    return turn, (Probe(),)


def _before_request(turn: Turn, given: Probed) -> Decision:
    if given.held is not None and not _runs_past(turn, given.held):
        return _settle(turn, settle.cut(given.held))
    if turn.doom is not None:
        return _settle(turn, settle.failed(turn.doom))
    if turn.rang:
        return replace(turn, rang=False), (Probe(),)
    return replace(turn, phase=Phase.GENERATING), (AskModel(turn.paused),)


def _while_generating(turn: Turn, given: Probed) -> Decision:
    if given.held is None or _runs_past(turn, given.held):
        return turn, ()
    return _settle(turn, settle.cut(given.held, discarded=True), BreakOff())


def _while_waiting(turn: Turn, given: Probed) -> Decision:
    """Nothing is generated, so nothing is discarded, and no steer has to wait."""
    if given.held is None:
        return turn, ()
    return _settle(turn, settle.cut(given.held), BreakOff())


def _answered(turn: Turn, given: ModelAnswered) -> Decision:
    generated = _joined(turn.paused, given.generated)
    turn = replace(turn, tries=0)
    if generated.stop is StopReason.REFUSAL:
        return _settle(turn, settle.failed("the model refused to go on with this conversation"))
    if generated.message.calls:
        committing = replace(turn, phase=Phase.COMMITTING, paused=None, pauses=0)
        return committing, (Commit(generated, turn.protected),)
    if generated.stop is StopReason.PAUSE:
        return _paused(turn, generated.message)
    if generated.stop is StopReason.CONTEXT_FULL:
        return _settle(turn, settle.failed("the conversation has become too long for the model"))
    if not generated.message.text.strip():
        return _settle(turn, settle.empty())
    return _settle(turn, settle.completed(generated.message, cut_off=generated.stop is StopReason.LENGTH))


def _paused(turn: Turn, message: Message) -> Decision:
    if turn.pauses >= PAUSES_LIMIT:
        return _settle(turn, settle.failed(f"the model paused {PAUSES_LIMIT} times without going on"))
    return _to_safe_point(replace(turn, paused=message, pauses=turn.pauses + 1))


def _failed(turn: Turn, given: ModelFailed) -> Decision:
    failure = given.failure
    if failure.temporary:
        seconds = retry.next_delay(
            turn.tries + 1, given.waited_s, turn.retry_for_s, failure.retry_after_s, given.jitter
        )
        if seconds is not None:
            waiting = replace(turn, phase=Phase.WAITING, tries=turn.tries + 1)
            return waiting, (Wait(seconds, failure.cause, waiting.tries + 1),)
    return _settle(turn, settle.failed(failure.cause))


def _try_again(turn: Turn, _: Waited) -> Decision:
    return _to_safe_point(turn)


def _committed(turn: Turn, given: Committed) -> Decision:
    return _act(turn, given.open_calls)


def _commit_refused(turn: Turn, given: CommitRefused) -> Decision:
    return _settle(turn, settle.cut(given.held, discarded=True))


def _while_acting(turn: Turn, given: Probed) -> Decision:
    if given.held is None or given.held.signal is turn.hurried_for:
        return turn, ()
    return replace(turn, hurried_for=given.held.signal), (Hurry(given.held),)


def _returned(turn: Turn, given: CallReturned) -> Decision:
    now = balances.after(turn.balance, Answered(given.call_id))
    if balances.reaches_zero(turn.balance, now):
        return replace(turn, balance=now, phase=Phase.BALANCED), (Probe(),)
    return replace(turn, balance=now), ()


def _close(turn: Turn, given: Probed) -> Decision:
    return replace(turn, phase=Phase.CLOSING, closing_for=given.held), (CloseBatch(given.held),)


def _closed(turn: Turn, _: BatchClosed) -> Decision:
    if turn.closing_for is not None:
        return _settle(turn, settle.cut(turn.closing_for))
    return _to_safe_point(replace(turn, balance=Balance(), hurried_for=None, protected=False))


def _overtaken(turn: Turn, given: SettleRefused) -> Decision:
    if turn.ending is None:
        raise RuleBroken("a settle was refused that was never asked for")
    return _settle(turn, settle.cut(given.held, overtaken=turn.ending.message))


def _end(turn: Turn, _: Settled) -> Decision:
    return replace(turn, phase=Phase.SETTLED), ()


def _fail_now(turn: Turn, given: LimitReached) -> Decision:
    return _settle(turn, settle.failed(given.cause), BreakOff())


def _fail_at_safe_point(turn: Turn, given: LimitReached) -> Decision:
    return replace(turn, doom=given.cause), ()


def _fail_when_balanced(turn: Turn, given: LimitReached) -> Decision:
    return replace(turn, doom=given.cause), (Hurry(None),)


def _nothing(turn: Turn, _: Input) -> Decision:
    return turn, ()


# --- parts of the rules -------------------------------------------------------------------------------------


def _runs_past(turn: Turn, held: Held) -> bool:
    """Whether a protected generation goes on although this signal holds."""
    return turn.protected and held.signal is Signal.STEER


def _to_safe_point(turn: Turn) -> Decision:
    return replace(turn, phase=Phase.AT_SAFE_POINT, rang=False), (Probe(),)


def _act(turn: Turn, open_calls: tuple[str, ...]) -> Decision:
    """Run the batch; the probe makes a signal that came during the commit hurry it."""
    acting = replace(turn, balance=balances.issued(open_calls), hurried_for=None)
    if not open_calls:  # every call of the message has its result already
        return replace(acting, phase=Phase.BALANCED), (Probe(),)
    hurry = () if turn.doom is None else (Hurry(None),)
    return replace(acting, phase=Phase.ACTING), (RunCalls(), *hurry, Probe())


def _settle(turn: Turn, ending: Ending, *before: Effect) -> Decision:
    return replace(turn, phase=Phase.SETTLING, ending=ending), (*before, Settle(ending))


def _joined(paused: Message | None, generated: Generated) -> Generated:
    if paused is None:
        return generated
    return replace(generated, message=assistant(*paused.blocks, *generated.message.blocks))


# --- the table ----------------------------------------------------------------------------------------------

Rule: TypeAlias = Callable[[Turn, Any], Decision]

RULES: Mapping[tuple[Phase, type], Rule] = {
    (Phase.STARTING, Began): _begin,
    (Phase.STARTING, BellRang): _nothing,
    (Phase.STARTING, LimitReached): _fail_at_safe_point,
    (Phase.AT_SAFE_POINT, BellRang): _probe_or_remember,
    (Phase.AT_SAFE_POINT, Probed): _before_request,
    (Phase.AT_SAFE_POINT, LimitReached): _fail_at_safe_point,
    (Phase.GENERATING, BellRang): _probe,
    (Phase.GENERATING, Probed): _while_generating,
    (Phase.GENERATING, ModelAnswered): _answered,
    (Phase.GENERATING, ModelFailed): _failed,
    (Phase.GENERATING, LimitReached): _fail_now,
    (Phase.WAITING, BellRang): _probe,
    (Phase.WAITING, Probed): _while_waiting,
    (Phase.WAITING, Waited): _try_again,
    (Phase.WAITING, LimitReached): _fail_now,
    (Phase.COMMITTING, BellRang): _nothing,  # the commit itself is refused by a steer or stop
    (Phase.COMMITTING, Committed): _committed,
    (Phase.COMMITTING, CommitRefused): _commit_refused,
    (Phase.COMMITTING, LimitReached): _fail_at_safe_point,
    (Phase.ACTING, BellRang): _probe,
    (Phase.ACTING, Probed): _while_acting,
    (Phase.ACTING, CallReturned): _returned,
    (Phase.ACTING, LimitReached): _fail_when_balanced,
    (Phase.BALANCED, BellRang): _nothing,  # the safe point before the next request probes again
    (Phase.BALANCED, Probed): _close,
    (Phase.BALANCED, LimitReached): _fail_at_safe_point,
    (Phase.CLOSING, BellRang): _nothing,
    (Phase.CLOSING, BatchClosed): _closed,
    (Phase.CLOSING, LimitReached): _fail_at_safe_point,
    (Phase.SETTLING, BellRang): _nothing,
    (Phase.SETTLING, Settled): _end,
    (Phase.SETTLING, SettleRefused): _overtaken,
    (Phase.SETTLING, LimitReached): _nothing,
}

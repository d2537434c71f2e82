"""A turn's surroundings in miniature: feeds it facts in the order in which the loop would.

It keeps what the turn asks for, and holds the turn to its laws at every effect: see `_perform`.
"""

from __future__ import annotations

from collections import deque

from core import turn as rules
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
from core.events import (
    BatchClosed,
    Began,
    CallReturned,
    CommitRefused,
    Committed,
    Input,
    ModelAnswered,
    ModelFailed,
    Probed,
    Settled,
    SettleRefused,
    Waited,
)
from core.generation import Generated, GenerationFailed, StopReason
from core.history import Block, Call, Text, assistant
from core.reasons import Reason
from core.settle import Ending
from core.signals import PRIORITY, Held, Signal
from core.turn import Phase, Turn
from core.usage import Usage

DECIDED = (Signal.STOP, Signal.STEER)  # raise `signal_seq`, so that commits and settles are refused


def said(*blocks: Block, stop: StopReason = StopReason.END) -> ModelAnswered:
    """A complete message of the model."""
    return ModelAnswered(Generated(assistant(*blocks), stop, Usage(), "model"))


def answer(words: str = "done", stop: StopReason = StopReason.END) -> ModelAnswered:
    """A final text."""
    return said(Text(words), stop=stop)


def asks_for(*call_ids: str, stop: StopReason = StopReason.CALLS) -> ModelAnswered:
    """A message with tool calls."""
    return said(*(Call(call_id, "logs", {}) for call_id in call_ids), stop=stop)


def fails(*, temporary: bool = True, waited_s: float = 0.0, cause: str = "overloaded") -> ModelFailed:
    """A request that came to nothing."""
    return ModelFailed(GenerationFailed(cause, temporary, Usage()), waited_s, 0.0)


class World:
    """One turn, what is true around it, and everything that it has asked for."""

    def __init__(self, turn: Turn | None = None) -> None:
        self.turn = turn or Turn()
        self.held: dict[Signal, str] = {}
        self.done: list[Effect] = []
        self.generating = False
        self.waiting = False
        self.batch: set[str] | None = None  # committed and not closed: the calls without a result
        self.ran = 0
        self.ending: Ending | None = None
        self.settled = False
        self._owed: deque[Effect] = deque()

    def begin(self, open_calls: tuple[str, ...] | None = None) -> World:
        """Start the turn and answer what it asks of the records at once."""
        if open_calls is not None:
            self.batch = set(open_calls)
        return self.give(Began(open_calls))

    def raise_(self, signal: Signal, by: str = "U1") -> World:
        """From now on this signal holds."""
        self.held.setdefault(signal, by)
        return self

    def give(self, given: Input) -> World:
        """Give the turn a fact, and then every answer that it is owed for what it asks."""
        self.feed(given)
        while self.owes:
            self.pay()
        return self

    def feed(self, given: Input) -> None:
        """Give the turn one fact and keep what it asks for."""
        match given:
            case ModelAnswered() | ModelFailed():
                self.generating = False
            case Waited():
                self.waiting = False
            case CallReturned(call_id):
                assert self.batch is not None
                self.batch.discard(call_id)
        self.turn, effects = rules.decide(self.turn, given)
        for effect in effects:
            self.done.append(effect)
            self._perform(effect)

    @property
    def owes(self) -> bool:
        """Whether an effect has not been answered yet."""
        return bool(self._owed)

    def pay(self) -> None:
        """Answer the oldest effect that wants an answer, truthfully."""
        match self._owed.popleft():
            case Probe():
                self.feed(Probed(self.first_held()))
            case Commit(generated, past_steers):
                refused = self._decided(past_steers=past_steers)
                if refused is not None:
                    self.feed(CommitRefused(refused))
                    return
                ids = tuple(call.id for call in generated.message.calls)
                self.batch = set(ids)
                self.feed(Committed(ids))
            case CloseBatch():
                self.batch = None
                self.feed(BatchClosed())
            case Settle(ending):
                refused = self._decided() if ending.conditional else None
                if refused is not None:
                    self.feed(SettleRefused(refused))
                    return
                self.settled = True
                self.feed(Settled())

    def first_held(self) -> Held | None:
        """What a probe finds."""
        return next((Held(signal, self.held[signal]) for signal in PRIORITY if signal in self.held), None)

    def _decided(self, *, past_steers: bool = False) -> Held | None:
        signals = DECIDED[:1] if past_steers else DECIDED
        return next((Held(signal, self.held[signal]) for signal in signals if signal in self.held), None)

    def _perform(self, effect: Effect) -> None:
        """The laws of a turn, one for each effect."""
        assert not self.settled, "nothing is asked for after the settle record"
        match effect:
            case Probe() | Commit():
                self._owed.append(effect)
            case AskModel():
                assert not self.generating, "never two generations at once"
                assert not self.waiting
                assert self.batch is None, "no request while a batch is open"
                self.generating = True
            case Wait():
                assert not self.generating
                self.waiting = True
            case BreakOff():
                self.generating = self.waiting = False
            case RunCalls():
                assert self.batch is not None
                assert self.turn.balance.open == self.batch, "exactly the open calls are run"
                self.ran += 1
            case Hurry():
                assert self.batch, "only calls that run can be hurried"
            case CloseBatch():
                assert self.batch == set(), "a batch is closed when every call has its result"
                self._owed.append(effect)
            case Settle(ending):
                assert self.turn.balance.is_zero, "a turn never settles with an open call"
                assert self.batch is None, "a turn never settles inside a batch"
                assert not self.generating, "what is under way is broken off first"
                assert not self.waiting
                self.ending = ending
                self._owed.append(effect)

    def stands(self, phase: Phase) -> bool:
        """Whether the turn is in this phase now."""
        return self.turn.phase is phase

    def asked(self, kind: type[Effect]) -> int:
        """How often it has asked for this."""
        return sum(isinstance(effect, kind) for effect in self.done)

    def asked_to_settle_for_good(self) -> bool:
        """Whether it settled once; before that it asks again only when a settle was refused."""
        settles = [effect.ending for effect in self.done if isinstance(effect, Settle)]
        return self.settled and 1 <= len(settles) <= 2 and all(one.conditional for one in settles[:-1])

    @property
    def reason(self) -> Reason | None:
        """Why it has ended; None while it runs."""
        return self.ending.reason if self.ending is not None and self.settled else None

    def finish(self) -> None:
        """Let everything under way come to its end; fails when the turn cannot end."""
        for _ in range(50):
            if self.turn.phase is Phase.SETTLED:
                return
            if self.owes:
                self.pay()
            elif self.turn.phase is Phase.STARTING:
                self.feed(Began())
            elif self.batch:
                self.feed(CallReturned(min(self.batch)))
            elif self.waiting:
                self.feed(Waited())
            else:
                assert self.generating, f"nothing will ever happen while {self.turn.phase}"
                self.feed(answer())
        raise AssertionError("it does not end")

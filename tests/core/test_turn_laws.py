"""Whatever comes, in whatever order the loop can give it, the laws of a turn hold.

`tests.core.turns` asserts them at every effect.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.events import BellRang, CallReturned, Input, LimitReached, Waited
from core.generation import StopReason
from core.signals import Signal
from core.turn import Phase, Turn
from tests.core.turns import World, answer, asks_for, fails

ENDS = st.sampled_from(StopReason)


class AnyTurn(RuleBasedStateMachine):
    """A turn, the model, its tools, the records and the people around it."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    @initialize(
        protected=st.booleans(),
        left=st.one_of(st.none(), st.just(()), st.just(("x",)), st.just(("x", "y"))),
    )
    def begin(self, protected: bool, left: tuple[str, ...] | None) -> None:
        self.world = World(Turn(protected=protected, retry_for_s=5))
        self.world.begin(left)

    def _give(self, given: Input) -> None:
        if self.world.turn.phase is not Phase.SETTLED:
            self.world.give(given)

    @rule(signal=st.sampled_from(Signal))
    def somebody_wishes(self, signal: Signal) -> None:
        self.world.raise_(signal)

    @rule()
    def a_bell_rings(self) -> None:
        self._give(BellRang())

    @rule()
    def time_is_up(self) -> None:
        self._give(LimitReached("it took too long"))

    @precondition(lambda self: self.world.generating)
    @rule(words=st.sampled_from(["", "done"]), stop=ENDS)
    def the_model_talks(self, words: str, stop: StopReason) -> None:
        self._give(answer(words, stop))

    @precondition(lambda self: self.world.generating)
    @rule(count=st.integers(1, 3), stop=ENDS)
    def the_model_calls(self, count: int, stop: StopReason) -> None:
        ids = [f"c{self._calls + index}" for index in range(count)]
        self._calls += count
        self._give(asks_for(*ids, stop=stop))

    @precondition(lambda self: self.world.generating)
    @rule(temporary=st.booleans(), waited_s=st.sampled_from([0.0, 2.0, 9.0]))
    def the_model_fails(self, temporary: bool, waited_s: float) -> None:
        self._give(fails(temporary=temporary, waited_s=waited_s))

    @precondition(lambda self: self.world.waiting)
    @rule()
    def the_wait_is_over(self) -> None:
        self._give(Waited())

    @precondition(lambda self: bool(self.world.batch))
    @rule(data=st.data())
    def a_call_returns(self, data: st.DataObject) -> None:
        assert self.world.batch
        self._give(CallReturned(data.draw(st.sampled_from(sorted(self.world.batch)))))

    @invariant()
    def something_is_under_way_until_it_has_settled(self) -> None:
        if self.world.turn.phase is Phase.SETTLED:
            assert self.world.settled
        else:
            assert self.world.generating or self.world.waiting or self.world.batch

    @invariant()
    def the_balance_is_the_batch(self) -> None:
        assert self.world.turn.balance.open == (self.world.batch or set())
        assert self.world.turn.balance.faults == ()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.finish()
            assert self.world.asked_to_settle_for_good()


TestAnyTurn = AnyTurn.TestCase
TestAnyTurn.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)

"""The signals, their one order, and the reason that each is stamped with."""

from core.reasons import REASONS, Afterwards, Reason
from core.signals import PRIORITY, STAMP, Held, Signal


def test_the_order_is_the_designs() -> None:
    assert [signal.value for signal in PRIORITY] == [
        "stop",
        "steer",
        "drain",
        "dispatched",
        "awaiting",
        "parked",
    ]


def test_every_signal_has_its_place_and_its_stamp() -> None:
    assert set(PRIORITY) == set(STAMP) == set(Signal)
    assert len(PRIORITY) == len(Signal)


def test_every_stamp_is_a_reason_of_its_own() -> None:
    assert len(set(STAMP.values())) == len(Signal)


def test_steer_and_drain_suspend_and_the_rest_ends() -> None:
    suspended = {
        s for s in Signal if REASONS[STAMP[s]].afterwards in {Afterwards.NEXT_TURN, Afterwards.RESUMED}
    }
    assert suspended == {Signal.STEER, Signal.DRAIN}
    assert STAMP[Signal.STOP] is Reason.STOPPED


def test_a_held_signal_says_who_raised_it() -> None:
    assert Held(Signal.STOP, "U1") == Held(Signal.STOP, by="U1") != Held(Signal.STOP, "U2")

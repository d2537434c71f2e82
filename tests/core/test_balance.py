"""The balance counts calls without a result, by call id."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.balance import (
    Answered,
    Balance,
    BalanceEvent,
    Fault,
    FaultKind,
    Issued,
    after,
    issued,
    reaches_zero,
)

IDS = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def well_formed(draw: st.DrawFn) -> list[BalanceEvent]:
    """Every call is issued once and answered once, after it was issued; the last ones may still be open."""
    events: list[BalanceEvent] = []
    fresh = iter(range(1000))
    still_open: list[str] = []
    for _ in range(draw(st.integers(0, 30))):
        answers: bool = draw(st.booleans())
        if still_open and answers:
            events.append(Answered(still_open.pop(draw(st.integers(0, len(still_open) - 1)))))
        else:
            still_open.append(f"call-{next(fresh)}")
            events.append(Issued(still_open[-1]))
    return events


ANYTHING: st.SearchStrategy[list[BalanceEvent]] = st.lists(st.one_of(IDS.map(Issued), IDS.map(Answered)))


def walk(events: Sequence[BalanceEvent]) -> list[Balance]:
    """The balance before the first event and after each."""
    balances = [Balance()]
    for event in events:
        balances.append(after(balances[-1], event))
    return balances


@given(well_formed())
def test_on_a_well_formed_stream_it_agrees_with_the_plain_counter_event_by_event(
    events: list[BalanceEvent],
) -> None:
    count = 0
    before = Balance()
    for event in events:
        now, counted = after(before, event), count + (1 if isinstance(event, Issued) else -1)
        assert now.count == counted
        assert now.is_zero is (counted == 0)
        assert reaches_zero(before, now) is (count > 0 and counted == 0)
        before, count = now, counted
    assert before.faults == ()


@given(ANYTHING)
def test_whatever_comes_it_is_zero_only_when_every_call_has_its_result(events: list[BalanceEvent]) -> None:
    named: set[str] = set()
    answered: set[str] = set()
    for event, now in zip(events, walk(events)[1:], strict=True):
        if isinstance(event, Issued):
            named.add(event.call_id)
        elif event.call_id in named:
            answered.add(event.call_id)
        assert now.is_zero is (named == answered)


@given(ANYTHING)
def test_every_event_either_counts_or_is_named_as_a_fault(events: list[BalanceEvent]) -> None:
    for event, (before, now) in zip(events, pairwise(walk(events)), strict=True):
        counted = (now.open, now.closed) != (before.open, before.closed)
        named = len(now.faults) - len(before.faults)
        assert counted is (named == 0)
        if named:
            assert now.faults[-1].call_id == event.call_id


@given(ANYTHING)
def test_a_fault_is_never_a_safe_point(events: list[BalanceEvent]) -> None:
    balances = walk(events)
    for before, now in pairwise(balances):
        if now.faults != before.faults:
            assert not reaches_zero(before, now)


@pytest.mark.parametrize(
    "events, fault",
    [
        ([Issued("a"), Issued("a")], Fault(FaultKind.DUPLICATE_CALL, "a")),
        ([Issued("a"), Answered("a"), Issued("a")], Fault(FaultKind.DUPLICATE_CALL, "a")),
        ([Answered("a")], Fault(FaultKind.RESULT_WITHOUT_CALL, "a")),
        ([Issued("a"), Answered("b")], Fault(FaultKind.RESULT_WITHOUT_CALL, "b")),
        ([Issued("a"), Answered("a"), Answered("a")], Fault(FaultKind.SECOND_RESULT, "a")),
    ],
)
def test_what_does_not_fit_is_named(events: list[BalanceEvent], fault: Fault) -> None:
    assert walk(events)[-1].faults == (fault,)


def test_a_second_result_does_not_stand_for_the_call_that_is_still_open() -> None:
    balance = walk([Issued("a"), Issued("b"), Answered("a"), Answered("a")])[-1]
    assert balance.open == {"b"}


def test_a_batch_begins_with_all_its_calls_open() -> None:
    assert issued(["a", "b"]).open == {"a", "b"}
    assert issued([]).is_zero


def test_a_batch_with_one_id_twice_waits_for_it_once_and_says_so() -> None:
    balance = issued(["a", "a"])
    assert balance.count == 1
    assert balance.faults == (Fault(FaultKind.DUPLICATE_CALL, "a"),)

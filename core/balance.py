"""The balance: the calls of the current batch that have no result yet.

Rule 1: it counts by call id, not only by number. A duplicate id, a result without a call and a second result
for a call are faults that are named; none of them ever makes the balance reach zero early.
Rule 2: only terminal events count: a call once it is committed, a result once it is recorded.
Rule 3: a turn may be cut only where the balance is zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias


class FaultKind(StrEnum):
    """What was wrong with an event."""

    DUPLICATE_CALL = "duplicate_call"
    RESULT_WITHOUT_CALL = "result_without_call"
    SECOND_RESULT = "second_result"


@dataclass(frozen=True, slots=True)
class Fault:
    """An event that does not fit, and the call id that it named."""

    kind: FaultKind
    call_id: str


@dataclass(frozen=True, slots=True)
class Issued:
    """A call was committed."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A result was recorded."""

    call_id: str


BalanceEvent: TypeAlias = Issued | Answered


@dataclass(frozen=True, slots=True)
class Balance:
    """Which calls of the batch are open, which are closed, and what did not fit."""

    open: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    faults: tuple[Fault, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether no call is open."""
        return not self.open

    @property
    def count(self) -> int:
        """How many calls are open."""
        return len(self.open)


def after(balance: Balance, event: BalanceEvent) -> Balance:
    """The balance after one more event."""
    match event:
        case Issued(call_id):
            if call_id in balance.open or call_id in balance.closed:
                return _with_fault(balance, FaultKind.DUPLICATE_CALL, call_id)
            return replace(balance, open=balance.open | {call_id})
        case Answered(call_id):
            if call_id in balance.closed:
                return _with_fault(balance, FaultKind.SECOND_RESULT, call_id)
            if call_id not in balance.open:
                return _with_fault(balance, FaultKind.RESULT_WITHOUT_CALL, call_id)
            return replace(balance, open=balance.open - {call_id}, closed=balance.closed | {call_id})


def reaches_zero(before: Balance, now: Balance) -> bool:
    """Whether this very event brought the balance from above zero back to zero: a safe point."""
    return not before.is_zero and now.is_zero


def issued(call_ids: Iterable[str]) -> Balance:
    """The balance of a batch whose calls have just been committed."""
    balance = Balance()
    for call_id in call_ids:
        balance = after(balance, Issued(call_id))
    return balance


def _with_fault(balance: Balance, kind: FaultKind, call_id: str) -> Balance:
    return replace(balance, faults=(*balance.faults, Fault(kind, call_id)))

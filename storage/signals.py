"""What a probe reads: the signals that the records know, in one query."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import ScalarSelect, select
from sqlalchemy.ext.asyncio import AsyncConnection

from core.inbox import Fate
from core.policy import Effect
from core.reasons import Reason
from core.settle import Mark
from core.signals import PRIORITY, Held, Signal
from storage.errors import Fenced
from storage.fence import Fence
from storage.tables import conversations, inbox, tombstones


async def tombstone(tx: AsyncConnection, turn_id: str) -> Mark | None:
    """The first stop that names the turn."""
    statement = (
        select(tombstones.c.by)
        .where(tombstones.c.turn_id == turn_id)
        .order_by(tombstones.c.inbox_seq)
        .limit(1)
    )
    by = (await tx.execute(statement)).scalar()
    return None if by is None else Mark(Reason.STOPPED, by)


def _stop(fence: Fence) -> ScalarSelect[str]:
    return (
        select(tombstones.c.by)
        .where(tombstones.c.turn_id == fence.turn_id)
        .order_by(tombstones.c.inbox_seq)
        .limit(1)
        .scalar_subquery()
    )


def _steer(fence: Fence) -> ScalarSelect[str]:
    return (
        select(inbox.c.author_id)
        .where(
            inbox.c.conversation_id == fence.conversation_id,
            inbox.c.fate == Fate.WAITING,
            inbox.c.effect == Effect.STEER,
        )
        .order_by(inbox.c.seq)
        .limit(1)
        .scalar_subquery()
    )


RECORDED: Mapping[Signal, Callable[[Fence], ScalarSelect[str]]] = {Signal.STOP: _stop, Signal.STEER: _steer}
"""The signals that the records know, and by whom; a drain is known to the process alone."""


async def first_held(
    tx: AsyncConnection, fence: Fence, raised_here: Mapping[Signal, str] | None = None
) -> Held | None:
    """The first signal that holds, in the order of priority; one statement, so that all is of one moment.

    `raised_here` are the signals that this process raised by itself, and by what. Raises Fenced when the
    lease has moved on.
    """
    by_whom = (by(fence).label(signal) for signal, by in RECORDED.items())
    statement = select(conversations.c.token, *by_whom).where(conversations.c.id == fence.conversation_id)
    row = (await tx.execute(statement)).first()
    if row is None or row.token != fence.token:
        raise Fenced(fence.conversation_id)
    raised = {**(raised_here or {}), **{signal: row._mapping[signal] for signal in RECORDED}}
    return next((Held(signal, raised[signal]) for signal in PRIORITY if raised.get(signal) is not None), None)

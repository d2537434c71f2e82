"""What a probe reads: the signals that the records know, in one query."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ScalarSelect, bindparam, select
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


_STOP = (
    select(tombstones.c.by)
    .where(tombstones.c.turn_id == bindparam("turn"))
    .order_by(tombstones.c.inbox_seq)
    .limit(1)
    .scalar_subquery()
)
_STEER = (
    select(inbox.c.author_id)
    .where(
        inbox.c.conversation_id == conversations.c.id,
        inbox.c.fate == Fate.WAITING,
        inbox.c.effect == Effect.STEER,
    )
    .order_by(inbox.c.seq)
    .limit(1)
    .scalar_subquery()
)

RECORDED: Mapping[Signal, ScalarSelect[str]] = {Signal.STOP: _STOP, Signal.STEER: _STEER}
"""The signals that the records know, and by whom; a drain is known to the process alone."""

_PROBE = select(
    conversations.c.token, *(by_whom.label(signal) for signal, by_whom in RECORDED.items())
).where(conversations.c.id == bindparam("this"))


async def first_held(
    tx: AsyncConnection, fence: Fence, raised_here: Mapping[Signal, str] | None = None
) -> Held | None:
    """The first signal that holds, in the order of priority; one statement, so that all is of one moment.

    `raised_here` are the signals that this process raised by itself, and by what. Raises Fenced when the
    lease has moved on.
    """
    row = (await tx.execute(_PROBE, {"this": fence.conversation_id, "turn": fence.turn_id})).first()
    if row is None or row.token != fence.token:
        raise Fenced(fence.conversation_id)
    raised = {**(raised_here or {}), **{signal: row._mapping[signal] for signal in RECORDED}}
    return next((Held(signal, raised[signal]) for signal in PRIORITY if raised.get(signal) is not None), None)

"""What a probe reads: the signals that the records know, one query each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sqlalchemy import select
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


async def _stop(tx: AsyncConnection, fence: Fence) -> Held | None:
    mark = await tombstone(tx, fence.turn_id)
    return None if mark is None else Held(Signal.STOP, mark.by or "")


async def _steer(tx: AsyncConnection, fence: Fence) -> Held | None:
    statement = (
        select(inbox.c.author_id)
        .where(
            inbox.c.conversation_id == fence.conversation_id,
            inbox.c.fate == Fate.WAITING,
            inbox.c.effect == Effect.STEER,
        )
        .order_by(inbox.c.seq)
        .limit(1)
    )
    by = (await tx.execute(statement)).scalar()
    return None if by is None else Held(Signal.STEER, by)


RECORDED: Mapping[Signal, Callable[[AsyncConnection, Fence], Awaitable[Held | None]]] = {
    Signal.STOP: _stop,
    Signal.STEER: _steer,
}
"""The signals that the records know; a drain is known to the process alone."""


async def first_held(
    tx: AsyncConnection, fence: Fence, raised_here: Mapping[Signal, str] | None = None
) -> Held | None:
    """The first signal that holds, in the order of priority; the rest are not probed.

    `raised_here` are the signals that this process raised by itself, and by what. Raises Fenced when the
    lease has moved on.
    """
    token = select(conversations.c.token).where(conversations.c.id == fence.conversation_id)
    if (await tx.execute(token)).scalar() != fence.token:
        raise Fenced(fence.conversation_id)
    for signal in PRIORITY:
        if raised_here and signal in raised_here:
            return Held(signal, raised_here[signal])
        if signal in RECORDED and (held := await RECORDED[signal](tx, fence)):
            return held
    return None

"""The fence: a conversation's row with its token. Every write of a turn goes through it first.

Rule: the row is locked before anything is written, so a takeover waits for the writer or the writer finds the
token moved on. A check without the lock is no fence.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Row, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.errors import Fenced
from storage.tables import conversations


@dataclass(frozen=True, slots=True)
class Fence:
    """What a turn shows at every write."""

    conversation_id: str
    token: int
    turn_id: str = ""


_LOCK = select(conversations).where(conversations.c.id == bindparam("this")).with_for_update(key_share=True)
# Made once: it is the first statement of nearly every transaction, and making it costs as much as running it.


async def lock(tx: AsyncConnection, conversation_id: str) -> Row[tuple[object, ...]]:
    """Lock a conversation's row for this transaction and return it."""
    return (await tx.execute(_LOCK, {"this": conversation_id})).one()


async def pass_through(tx: AsyncConnection, fence: Fence) -> Row[tuple[object, ...]]:
    """Lock the row and return it; raises Fenced when the lease has moved on."""
    row = await lock(tx, fence.conversation_id)
    if row.token != fence.token or (fence.turn_id and row.active_turn != fence.turn_id):
        raise Fenced(fence.conversation_id)
    return row

"""The committed messages of a conversation: appended under the fence, never rewritten."""

from __future__ import annotations

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.history import Message, blocks_to_json, message_from_json
from storage.engine import db_now
from storage.statements import new_id
from storage.tables import calls, conversations, transcript


async def append(
    tx: AsyncConnection, conversation_id: str, turn_id: str, message: Message
) -> tuple[int, str]:
    """Append one message; returns its position and its id. The conversation's row must be locked."""
    moved_on = (
        update(conversations)
        .where(conversations.c.id == conversation_id)
        .values(next_position=conversations.c.next_position + 1)
        .returning(conversations.c.next_position)
    )
    position = int((await tx.execute(moved_on)).scalar_one()) - 1
    return position, await insert(tx, conversation_id, turn_id, position, message)


async def insert(
    tx: AsyncConnection, conversation_id: str, turn_id: str, position: int, message: Message
) -> str:
    """Put a message at the conversation's next position and return its id.

    For whoever changes the conversation's row anyway, and moves its `next_position` on by that.
    """
    event_id = new_id("event")
    await tx.execute(
        _INSERT,
        {
            "conversation_id": conversation_id,
            "position": position,
            "id": event_id,
            "turn_id": turn_id,
            "role": message.role,
            "blocks": blocks_to_json(message.blocks),
        },
    )
    return event_id


_INSERT = transcript.insert().values(at=db_now())


async def messages(tx: AsyncConnection, conversation_id: str, from_position: int = 0) -> list[Message]:
    """The transcript from a position on, in order."""
    statement = (
        select(transcript.c.role, transcript.c.blocks)
        .where(transcript.c.conversation_id == conversation_id, transcript.c.position >= from_position)
        .order_by(transcript.c.position)
    )
    return [message_from_json(row.role, row.blocks) for row in (await tx.execute(statement)).all()]


async def call_ids(tx: AsyncConnection, conversation_id: str) -> set[str]:
    """Every call id that the conversation has used."""
    return set(
        (await tx.execute(select(calls.c.id).where(calls.c.conversation_id == conversation_id))).scalars()
    )


async def batch(tx: AsyncConnection, conversation_id: str) -> list[Row[tuple[object, ...]]]:
    """The calls of the batch that is not closed yet, in the order in which the model made them."""
    newest = (
        select(func.max(calls.c.position))
        .where(calls.c.conversation_id == conversation_id, calls.c.closed.is_(False))
        .scalar_subquery()
    )
    statement = (
        select(calls)
        .where(calls.c.conversation_id == conversation_id, calls.c.position == newest)
        .order_by(calls.c.number)
    )
    return list((await tx.execute(statement)).all())

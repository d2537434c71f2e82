"""Messages of ours that the platform must take: queued in the transaction that decides them.

Anybody delivers them.

Rule: one row for each thing that is said once, by its `once` key; it stays open until the platform has taken
it or it was given up with a record.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import db_now
from storage.statements import insert_once, new_id
from storage.tables import conversations, outbox, settlements


async def queue(
    tx: AsyncConnection,
    conversation_id: str,
    *,
    kind: str,
    once: str,
    text: str,
    turn_id: str | None = None,
    to_user: str | None = None,
    picture: bytes | None = None,
    final_event_id: str | None = None,
) -> None:
    """Queue one message, unless it was queued before."""
    await insert_once(
        tx,
        outbox,
        {
            "id": new_id("post"),
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "kind": kind,
            "once": once,
            "to_user": to_user,
            "text": text,
            "picture": picture,
            "final_event_id": final_event_id,
            "queued_at": db_now(),
        },
    )


async def due(tx: AsyncConnection, limit: int = 50) -> list[Row[Any]]:
    """Open messages whose time has come, in the order in which they were queued."""
    statement = (
        select(outbox, *_ADDRESS)
        .join(conversations)
        .where(outbox.c.done_at.is_(None), outbox.c.not_before <= db_now())
        .order_by(outbox.c.number)
        .limit(limit)
    )
    return list((await tx.execute(statement)).all())


_ADDRESS = (
    conversations.c.platform,
    conversations.c.workspace,
    conversations.c.channel,
    conversations.c.thread,
)


async def first_open(tx: AsyncConnection, conversation_id: str) -> Row[Any] | None:
    """The first open message of a thread, with the time now; None when it is not due yet or there is none."""
    statement = (
        select(outbox, *_ADDRESS, db_now().label("now"))
        .join(conversations)
        .where(outbox.c.conversation_id == conversation_id, outbox.c.done_at.is_(None))
        .order_by(outbox.c.number)
        .limit(1)
    )
    row = (await tx.execute(statement)).first()
    return row if row is not None and row.not_before <= row.now else None


async def begin_post(tx: AsyncConnection, post_id: str) -> None:
    """Mark that a post is about to be sent, so that a lost answer is looked for before it is sent again."""
    await tx.execute(
        update(outbox)
        .where(outbox.c.id == post_id, outbox.c.posting_since.is_(None))
        .values(posting_since=db_now())
    )


async def part_done(tx: AsyncConnection, post_id: str, parts_done: int, parts: int) -> None:
    """The platform has taken so many parts; with the last one the message is done."""
    done = parts_done >= parts
    await tx.execute(
        update(outbox)
        .where(outbox.c.id == post_id)
        .values(
            parts_done=parts_done,
            posting_since=None,
            tries=0,
            not_before=0,
            done_at=db_now() if done else None,
        )
    )
    row = (await tx.execute(select(outbox).where(outbox.c.id == post_id))).one()
    if done and row.kind == "answer":
        await tx.execute(
            update(settlements)
            .where(settlements.c.turn_id == row.turn_id, settlements.c.answer_posted_at.is_(None))
            .values(answer_posted_at=db_now())
        )


async def try_later(tx: AsyncConnection, post_id: str, seconds: float, *, not_sent: bool) -> None:
    """The platform did not take it; `not_sent` says that surely nothing was posted."""
    values: dict[str, Any] = {"not_before": db_now() + seconds, "tries": outbox.c.tries + 1}
    if not_sent:
        values["posting_since"] = None
    await tx.execute(update(outbox).where(outbox.c.id == post_id).values(**values))


async def give_up(tx: AsyncConnection, post_id: str, why: str) -> None:
    """The platform will never take it."""
    await tx.execute(
        update(outbox).where(outbox.c.id == post_id).values(done_at=db_now(), given_up=why[:200])
    )

"""Messages of ours that the platform must take: queued in the transaction that decides them.

Anybody delivers them.

Rule: one row for each thing that is said once, by its `once` key; it stays open until the platform has taken
it or it was given up with a record.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.claims import held_by_others
from storage.engine import db_now
from storage.statements import insert_once, new_id
from storage.tables import conversations, outbox, settlements

UNDELIVERED = "undelivered"
"""The kind of a message that comes to one person because its thread took it no more."""


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


_ADDRESS = (
    conversations.c.platform,
    conversations.c.workspace,
    conversations.c.channel,
    conversations.c.thread,
)


def thing(conversation_id: str) -> str:
    """What is claimed by whoever posts into this thread."""
    return f"thread:{conversation_id}"


_THING = literal("thread:").concat(outbox.c.conversation_id)
_earlier = outbox.alias("earlier")
_IS_NEXT = (
    outbox.c.done_at.is_(None),
    ~select(_earlier.c.number)
    .where(
        _earlier.c.conversation_id == outbox.c.conversation_id,
        _earlier.c.done_at.is_(None),
        _earlier.c.number < outbox.c.number,
    )
    .exists(),
)
"""The first open message of its thread."""


async def due(tx: AsyncConnection, owner: str, limit: int = 50) -> list[Row[Any]]:
    """The next message of each thread whose time has come; not of threads that others post into."""
    statement = (
        select(outbox, *_ADDRESS)
        .join(conversations)
        .where(*_IS_NEXT, outbox.c.not_before <= db_now(), ~held_by_others(_THING, owner))
        .order_by(outbox.c.number)
        .limit(limit)
    )
    return list((await tx.execute(statement)).all())


def due_in(owner: Any) -> Any:
    """Seconds until a message is to be posted, as a scalar subquery; null when none is."""
    soonest = func.min(outbox.c.not_before) - db_now()
    return select(soonest).where(*_IS_NEXT, ~held_by_others(_THING, owner)).scalar_subquery()


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


async def begin_post(
    tx: AsyncConnection, post_id: str, parts_done: int, posting_since: float | None
) -> float | None:
    """Mark that the next part is about to be sent: a lost answer is looked for before it is sent again.

    Returns since when; None when the message is not as the caller has read it, and is not its to send.
    """
    begun = (
        update(outbox)
        .where(
            outbox.c.id == post_id,
            outbox.c.done_at.is_(None),
            outbox.c.parts_done == parts_done,
            outbox.c.posting_since.is_not_distinct_from(posting_since),
        )
        .values(posting_since=db_now())
        .returning(outbox.c.posting_since)
    )
    since = (await tx.execute(begun)).scalar()
    return None if since is None else float(since)


async def part_done(tx: AsyncConnection, post_id: str, parts_done: int, parts: int) -> None:
    """The platform has taken so many parts; with the last one the message is done."""
    done = parts_done >= parts
    await tx.execute(
        update(outbox)
        # Not what another process knows better by now: a frozen one may come late.
        .where(outbox.c.id == post_id, outbox.c.done_at.is_(None), outbox.c.parts_done <= parts_done)
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


async def give_up(tx: AsyncConnection, post_id: str, why: str, instead: str | None = None) -> None:
    """The platform will never take it; `instead` is sent directly to whoever began the conversation."""
    given_up = await tx.execute(
        update(outbox)
        .where(outbox.c.id == post_id, outbox.c.done_at.is_(None))
        .values(done_at=db_now(), given_up=why[:200])
    )
    if instead is None or not given_up.rowcount:
        return
    post = (
        await tx.execute(
            select(outbox, conversations.c.initiator).join(conversations).where(outbox.c.id == post_id)
        )
    ).one()
    if post.initiator is not None:
        await queue(
            tx, post.conversation_id, kind=UNDELIVERED, once=f"{UNDELIVERED}:{post_id}", text=instead,
            turn_id=post.turn_id, to_user=post.initiator,
        )  # fmt: skip


async def due_again(tx: AsyncConnection, within_s: float) -> int:
    """The platform takes posts again: what would be tried within so long is due now. Returns how many."""
    result = await tx.execute(
        update(outbox)
        .where(
            outbox.c.done_at.is_(None),
            outbox.c.not_before > db_now(),
            outbox.c.not_before <= db_now() + within_s,
        )
        .values(not_before=0)
    )
    return result.rowcount

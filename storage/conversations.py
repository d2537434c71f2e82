"""Who may work on a conversation: claim, renew, release, and what lay too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, case, func, select, tuple_, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Thread
from core.fairness import HANDICAP_S
from core.inbox import Fate
from core.settle import spoken
from storage import outbox, steps
from storage.among import among
from storage.engine import db_now
from storage.fence import Fence, pass_through
from storage.inbox import IS_WAITING_WISH
from storage.statements import now
from storage.tables import conversations, inbox

C = conversations.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """A conversation that this worker may work on, under its token."""

    fence: Fence
    thread: Thread
    history_wanted: bool
    wished_at: float  # the newest of all that it was claimed for, in seconds since the epoch
    waited_s: float  # since then


async def claim(tx: AsyncConnection, worker: str, lease_s: float, most: int = 1) -> list[Claimed]:
    """Take conversations in the order of `core.fairness`, at most so many, but those that others take."""
    first = (
        select(C.id)
        .where(*_IS_CLAIMABLE, C.not_before <= db_now())
        .order_by(func.coalesce(C.resume_since, _first_in_line()))
        .limit(most)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("first")
    )
    taken = (
        update(conversations)
        .where(C.id.in_(select(first.c.id)))
        .values(token=C.token + 1, lease_owner=worker, lease_expires=db_now() + lease_s)
        .returning(conversations, db_now().label("now"))
    )
    rows = (await tx.execute(taken)).all()
    wished = await _newest_wishes(tx, [row.id for row in rows])
    claimed = []
    for row in rows:
        wished_at = max(wished.get(row.id, 0.0), row.resume_since or 0.0)
        fence = Fence(row.id, row.token)
        claimed.append(
            Claimed(fence, thread_of(row), row.history == "wanted", wished_at, row.now - wished_at)
        )
    return claimed


def _first_in_line() -> Any:
    """When the first of a conversation's wishes counts as having come."""
    handicap = case(
        *((inbox.c.source == source, seconds) for source, seconds in HANDICAP_S.items() if seconds),
        else_=0.0,
    )
    return (
        select(func.min(inbox.c.received_at + handicap))
        .where(inbox.c.conversation_id == C.id, *IS_WAITING_WISH)
        .scalar_subquery()
    )


_CALLING = union_all(
    select(inbox.c.conversation_id).where(*IS_WAITING_WISH),
    select(C.id).where(C.resume_turn.is_not(None)),
)
"""The conversations that call for a worker: with a wish, or with unfinished work."""

_IS_CLAIMABLE = (among(C.id, _CALLING), C.active_turn.is_(None), C.lease_expires <= db_now())


async def _newest_wishes(tx: AsyncConnection, conversation_ids: Sequence[str]) -> dict[str, float]:
    if not conversation_ids:
        return {}
    newest = (
        select(inbox.c.conversation_id, func.max(inbox.c.received_at).label("newest"))
        .where(inbox.c.conversation_id.in_(conversation_ids), *IS_WAITING_WISH)
        .group_by(inbox.c.conversation_id)
    )
    return {row.conversation_id: row.newest for row in (await tx.execute(newest)).all()}


def thread_of(row: Row[Any]) -> Thread:
    """The address in a row that carries the conversation's columns."""
    return Thread(row.platform, row.workspace, row.channel, row.thread)


def _wishes_of(conversation_id: str) -> tuple[Any, ...]:
    return (inbox.c.conversation_id == conversation_id, *IS_WAITING_WISH)


def due_in() -> Any:
    """Seconds until a conversation may be claimed, as a scalar subquery; null when none waits."""
    return select(func.min(C.not_before) - db_now()).where(*_IS_CLAIMABLE).scalar_subquery()


async def soonest(tx: AsyncConnection) -> float | None:
    """Seconds until a conversation may be claimed, 0 for now; None when none waits."""
    seconds = (await tx.execute(select(due_in()))).scalar()
    return None if seconds is None else max(0.0, float(seconds))


@dataclass(frozen=True, slots=True)
class Renewed:
    """What came of a renewal; a lease in neither was given up meanwhile, or is written under just now."""

    kept: frozenset[Fence]
    lost: frozenset[Fence]


async def renew(
    tx: AsyncConnection, fences: Sequence[Fence], lease_s: float, *, waits: bool = False
) -> Renewed:
    """Renew leases that are held.

    One that is locked is passed over unless this waits: whoever locks it may wait for somebody who is frozen,
    and all the others must not wait for it too.
    """
    by_id = {fence.conversation_id: fence for fence in fences}
    free = select(C.id).where(C.id.in_(by_id)).with_for_update(skip_locked=not waits, key_share=True)
    held = tuple_(C.id, C.token).in_([(fence.conversation_id, fence.token) for fence in fences])
    renewing = (
        update(conversations)
        .where(C.id.in_(select(free.cte("free").c.id)), held, C.lease_owner.is_not(None))
        .values(lease_expires=db_now() + lease_s)
        .returning(C.id)
    )
    kept = frozenset(by_id[name] for name in (await tx.execute(renewing)).scalars())
    if len(kept) == len(fences):
        return Renewed(kept, frozenset())
    tokens = select(C.id, C.token).where(C.id.in_(by_id))
    now_at = {row.id: row.token for row in (await tx.execute(tokens)).all()}
    lost = frozenset(fence for fence in fences if now_at.get(fence.conversation_id) != fence.token)
    return Renewed(kept, lost)


async def let_go(tx: AsyncConnection, worker: str, kept: Sequence[str]) -> int:
    """End this worker's leases on conversations that it does not work on (any more); returns how many."""
    ended = await tx.execute(
        update(conversations)
        .where(C.lease_owner == worker, C.lease_expires > 0, C.id.not_in(kept))
        .values(lease_expires=0)
    )
    return ended.rowcount


async def release(tx: AsyncConnection, fence: Fence) -> None:
    """Give a claimed conversation back unused."""
    await pass_through(tx, fence)
    await tx.execute(
        update(conversations).where(C.id == fence.conversation_id).values(lease_owner=None, lease_expires=0)
    )


async def end_all_leases(tx: AsyncConnection) -> None:
    """At the start of the one process of an embedded database: whoever held a lease is gone."""
    await tx.execute(update(conversations).where(C.lease_expires > 0).values(lease_expires=0))


async def set_aside(tx: AsyncConnection, fence: Fence) -> None:
    """Work that lay too long is not taken up: its messages become context and the thread is told."""
    conversation = await pass_through(tx, fence)
    at = await now(tx)
    waited = at - await _waiting_since(tx, conversation)
    await tx.execute(
        update(inbox).where(*_wishes_of(fence.conversation_id)).values(fate=Fate.CONTEXT, receipt=None)
    )
    if conversation.resume_turn is not None:
        await steps.give_up_batch(tx, replace(fence, turn_id=conversation.resume_turn))
    await tx.execute(
        update(conversations)
        .where(C.id == fence.conversation_id)
        .values(resume_turn=None, resume_since=None, lease_owner=None, lease_expires=0, gathering_since=None)
    )
    await outbox.queue(
        tx,
        fence.conversation_id,
        kind="expired",
        once=f"expired:{fence.conversation_id}:{fence.token}",
        text=f"I was away while this waited for {spoken(waited)}, so I did not take it up. "
        "Mention me to start again.",
    )


async def _waiting_since(tx: AsyncConnection, conversation: Row[Any]) -> float:
    wishes = select(func.min(inbox.c.received_at)).where(*_wishes_of(conversation.id))
    first = (await tx.execute(wishes)).scalar()
    times = [time for time in (first, conversation.resume_since) if time is not None]
    return min(times) if times else float(await now(tx))


async def is_empty(tx: AsyncConnection) -> bool:
    """Whether the database knows of no conversation at all."""
    return (await tx.execute(select(C.id).limit(1))).first() is None

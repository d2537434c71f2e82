"""Who may work on a conversation: claim, renew, release, and what lay too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Thread
from core.inbox import WISHES, Fate
from core.settle import spoken
from storage import outbox, steps
from storage.engine import db_now
from storage.fence import Fence, lock, pass_through
from storage.inbox import waiting_wish
from storage.statements import now
from storage.tables import conversations, inbox

C = conversations.c

CLAIMABLE = (
    C.active_turn.is_(None),
    C.lease_expires <= db_now(),
    C.not_before <= db_now(),
    or_(C.resume_turn.is_not(None), waiting_wish()),
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A conversation that this worker may work on, under its token."""

    fence: Fence
    thread: Thread
    history_wanted: bool
    wished_at: float  # the newest of all that it was claimed for, in seconds since the epoch
    waited_s: float  # since then


async def claim(tx: AsyncConnection, worker: str, lease_s: float) -> Claimed | None:
    """Take the conversation that has waited longest; None when none waits."""
    oldest = (
        select(C.id)
        .where(*CLAIMABLE)
        .order_by(func.coalesce(C.resume_since, _first_wish()))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    conversation_id = (await tx.execute(oldest)).scalar()
    if conversation_id is None:
        return None
    await tx.execute(
        update(conversations)
        .where(C.id == conversation_id)
        .values(token=C.token + 1, lease_owner=worker, lease_expires=db_now() + lease_s)
    )
    row = (await tx.execute(select(conversations).where(C.id == conversation_id))).one()
    newest = select(func.max(inbox.c.received_at)).where(*_wishes_of(conversation_id))
    wished_at = max((await tx.execute(newest)).scalar() or 0.0, row.resume_since or 0.0)
    waited_s = await now(tx) - wished_at
    return Claimed(Fence(row.id, row.token), thread_of(row), row.history == "wanted", wished_at, waited_s)


def thread_of(row: Row[Any]) -> Thread:
    """The address in a row that carries the conversation's columns."""
    return Thread(row.platform, row.workspace, row.channel, row.thread)


def _wishes_of(conversation_id: str) -> tuple[Any, ...]:
    return (
        inbox.c.conversation_id == conversation_id,
        inbox.c.fate == Fate.WAITING,
        inbox.c.effect.in_([effect.value for effect in WISHES]),
    )


def _first_wish() -> Any:
    return (
        select(func.min(inbox.c.received_at))
        .where(inbox.c.conversation_id == C.id, inbox.c.fate == Fate.WAITING)
        .scalar_subquery()
    )


async def soonest(tx: AsyncConnection) -> float | None:
    """Seconds until a conversation may be claimed, 0 for now; None when none waits."""
    statement = select(func.min(C.not_before) - db_now()).where(
        C.active_turn.is_(None),
        C.lease_expires <= db_now(),
        or_(C.resume_turn.is_not(None), waiting_wish()),
    )
    seconds = (await tx.execute(statement)).scalar()
    return None if seconds is None else max(0.0, float(seconds))


async def renew(tx: AsyncConnection, fences: Sequence[Fence], lease_s: float) -> list[Fence]:
    """Renew leases that are held; returns those that somebody else has taken over."""
    lost = []
    for fence in fences:
        conversation = await lock(tx, fence.conversation_id)
        if conversation.token != fence.token:
            lost.append(fence)
        elif conversation.lease_owner is not None:  # else given up meanwhile, and free for whoever comes
            await tx.execute(
                update(conversations)
                .where(C.id == fence.conversation_id)
                .values(lease_expires=db_now() + lease_s)
            )
    return lost


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

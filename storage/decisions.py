"""The decide transaction: what a stored message does, fixed once, with the conversation's row locked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core import policy as policies
from core.arrivals import PEOPLE_SOURCES, Addressed, AuthorRole, Marker, Source
from core.inbox import FATE, RECEIPT, WISHES, Fate
from core.policy import Effect, Policy, Situation, Verdict
from storage import cards, outbox
from storage.engine import db_now
from storage.fence import lock
from storage.tables import conversations, inbox, tombstones, turns

GATHER_AT_MOST = 10
"""A thread that never falls quiet delays the next turn by at most so many times `gather_s`."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided; `effect` is None when it had been decided before."""

    conversation_id: str
    effect: Effect | None = None


async def decide(
    tx: AsyncConnection,
    seq: int,
    policy: Policy,
    *,
    role: AuthorRole,
    author_name: str,
    told: str | None = None,
) -> Decided:
    """Fix the effect of a message.

    `told` replaces the reason in a refusal (the writer could not be looked up).
    """
    row = (await tx.execute(select(inbox).where(inbox.c.seq == seq))).one()
    conversation = await lock(tx, row.conversation_id)
    row = (await tx.execute(select(inbox).where(inbox.c.seq == seq).with_for_update(key_share=True))).one()
    if row.effect is not None or row.fate != Fate.WAITING:
        return Decided(row.conversation_id)
    running = await is_running(tx, conversation)
    situation = Situation(
        Source(row.source), role, Marker(row.marker), Addressed(row.addressed), running, conversation.channel
    )
    verdict = await _verdict(tx, row, conversation, policy, situation)
    await _record(tx, row, role, author_name, verdict)
    await _APPLY[verdict.effect](tx, row, conversation, verdict, told)
    if verdict.effect in WISHES:
        await _note_initiator(tx, row, role)
    await _keep_gathering(tx, row.conversation_id)
    return Decided(row.conversation_id, verdict.effect)


async def is_running(tx: AsyncConnection, conversation: Row[Any]) -> bool:
    """Whether a turn runs, or work waits for one: a message before the first turn's start joins that turn."""
    if conversation.active_turn is not None or conversation.resume_turn is not None:
        return True
    waiting = select(inbox.c.seq).where(
        inbox.c.conversation_id == conversation.id,
        inbox.c.fate == Fate.WAITING,
        inbox.c.effect.in_([effect.value for effect in WISHES]),
    )
    return (await tx.execute(waiting.limit(1))).first() is not None


async def _verdict(
    tx: AsyncConnection, row: Row[Any], conversation: Row[Any], policy: Policy, situation: Situation
) -> Verdict:
    """What the table says, unless a stop speaks otherwise: of an earlier wish, or of work that has ended."""
    verdict = policies.decide(policy, situation)
    if verdict.effect in WISHES and await _stopped_later(tx, row):
        return Verdict(Effect.CONTEXT, "stopped", "You were stopped before this was read.")
    if verdict.effect is Effect.STOP and not await _can_stop(tx, row, conversation):
        return policies.decide(policy, replace(situation, running=False))
    return verdict


async def _stopped_later(tx: AsyncConnection, row: Row[Any]) -> bool:
    stored = select(func.min(inbox.c.seq)).where(inbox.c.origin == row.origin).scalar_subquery()
    later = select(tombstones.c.inbox_seq).where(
        tombstones.c.conversation_id == row.conversation_id, tombstones.c.inbox_seq > stored
    )
    return (await tx.execute(later.limit(1))).first() is not None


async def _can_stop(tx: AsyncConnection, row: Row[Any], conversation: Row[Any]) -> bool:
    """A stop never touches a later message.

    Neither a turn that has read one, nor an analysis that began after it.
    """
    if conversation.active_turn is None:
        return True
    if row.stops_turn == conversation.active_turn:
        return True
    turn = (await tx.execute(select(turns).where(turns.c.id == conversation.active_turn))).one()
    if row.stops_turn is not None:
        named = (await tx.execute(select(turns).where(turns.c.id == row.stops_turn))).first()
        if named is None or named.analysis != turn.analysis:
            return False
    return bool(turn.read_up_to < row.seq)


async def _record(
    tx: AsyncConnection, row: Row[Any], role: AuthorRole, author_name: str, verdict: Verdict
) -> None:
    receipt = RECEIPT[verdict.effect] if row.message_ref and not row.author_is_bot else None
    await tx.execute(
        update(inbox)
        .where(inbox.c.seq == row.seq)
        .values(
            role=role,
            author_name=author_name,
            effect=verdict.effect,
            rule=verdict.rule,
            fate=FATE[verdict.effect],
            receipt=receipt,
            decided_at=db_now(),
        )
    )


async def _note_initiator(tx: AsyncConnection, row: Row[Any], role: AuthorRole) -> None:
    if row.source in PEOPLE_SOURCES and role is not AuthorRole.BOT:
        await tx.execute(
            update(conversations)
            .where(conversations.c.id == row.conversation_id, conversations.c.initiator.is_(None))
            .values(initiator=row.author_id)
        )


async def _keep_gathering(tx: AsyncConnection, conversation_id: str) -> None:
    """After a cut the next turn waits until the thread has been quiet for a while, but not for ever."""
    c = conversations.c
    quiet_at = db_now() + c.gather_s
    latest = c.gathering_since + c.gather_s * GATHER_AT_MOST
    await tx.execute(
        update(conversations)
        .where(c.id == conversation_id, c.gathering_since.is_not(None))
        .values(not_before=case((quiet_at < latest, quiet_at), else_=latest))
    )


# --- one function for each effect ---------------------------------------------------------------------------


async def _wait(
    tx: AsyncConnection, row: Row[Any], conversation: Row[Any], verdict: Verdict, told: str | None
) -> None:
    """Nothing more: a worker finds it."""


async def _steer(
    tx: AsyncConnection, row: Row[Any], conversation: Row[Any], verdict: Verdict, told: str | None
) -> None:
    await _raise_signal(tx, row.conversation_id)
    await cards.want(tx, conversation.active_turn)


async def _stop(
    tx: AsyncConnection, row: Row[Any], conversation: Row[Any], verdict: Verdict, told: str | None
) -> None:
    """Set the tombstone: on the turn that runs, else on the messages stored before it.

    Between two turns of the same work the tombstone waits for the next one, which ends at once: so the stop
    is on record, and the card says it.
    """
    await tx.execute(
        tombstones.insert().values(
            inbox_seq=row.seq,
            conversation_id=row.conversation_id,
            turn_id=conversation.active_turn,
            by=row.author_id,
            at=db_now(),
        )
    )
    await _raise_signal(tx, row.conversation_id)
    if conversation.active_turn is not None:
        await tx.execute(update(inbox).where(inbox.c.seq == row.seq).values(turn_id=conversation.active_turn))
        await cards.want(tx, conversation.active_turn, urgent=True)
        return
    await unread_to_context(tx, row.conversation_id, row.seq)
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == row.conversation_id)
        .values(gathering_since=None, not_before=0)
    )


async def _deny(
    tx: AsyncConnection, row: Row[Any], conversation: Row[Any], verdict: Verdict, told: str | None
) -> None:
    if verdict.silent or row.author_is_bot:
        return
    once = f"deny:{row.conversation_id}:{row.author_id}"
    if verdict.rule == "stop_ended":
        once = f"deny:{row.key}"  # an answer to this very click
    await outbox.queue(
        tx, row.conversation_id, kind="private", once=once, text=told or verdict.reason, to_user=row.author_id
    )


async def _raise_signal(tx: AsyncConnection, conversation_id: str) -> None:
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id)
        .values(signal_seq=conversations.c.signal_seq + 1)
    )


async def unread_to_context(tx: AsyncConnection, conversation_id: str, before_seq: int) -> None:
    """Unread wishes stored before a stop become context, whatever they were edited to since."""
    version = inbox.alias()
    stored = select(func.min(version.c.seq)).where(version.c.origin == inbox.c.origin).scalar_subquery()
    await tx.execute(
        update(inbox)
        .where(
            inbox.c.conversation_id == conversation_id,
            stored < before_seq,
            inbox.c.fate == Fate.WAITING,
            inbox.c.effect.is_not(None),
        )
        .values(fate=Fate.CONTEXT, receipt=None)
    )


_APPLY = {
    Effect.START: _wait,
    Effect.QUEUE: _wait,
    Effect.CONTEXT: _wait,
    Effect.STEER: _steer,
    Effect.STOP: _stop,
    Effect.DENY: _deny,
}

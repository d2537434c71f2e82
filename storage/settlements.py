"""The settle transaction: the one durable record of how a turn ended. Writing it releases the turn's card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core import evidence, settle
from core.evidence import CitedCall
from core.progress import preview
from core.reasons import REASONS, Afterwards, Reason, goes_on
from core.resume import gives_up
from core.settle import Ending, Mark
from core.tools import Outcome
from storage import cards, outbox, steps, transcripts
from storage.decisions import unread_to_context
from storage.engine import db_now
from storage.errors import AlreadySettled
from storage.fence import Fence, lock, pass_through
from storage.signals import tombstone
from storage.statements import insert_once, now
from storage.steps import Booking, calls_were_made
from storage.tables import calls, conversations, inbox, settlements, tombstones, turns

CUT_OFF = "\n\n_(The answer ends here because it reached the model's length limit.)_"


async def settle_turn(
    tx: AsyncConnection,
    fence: Fence,
    worker: str,
    ending: Ending,
    *,
    seen: int,
    bookings: Sequence[Booking] = (),
) -> Ending:
    """Settle a live turn.

    Raises Signalled when it would end of its own accord and a steer or stop was decided first. Returns
    the ending that stands: a stop decided meanwhile goes before any cut.
    """
    conversation = await pass_through(tx, fence)
    if ending.conditional:
        await steps.refuse_when_signalled(tx, fence, conversation, seen)
    standing = settle.in_force(ending, await _stop_of(tx, fence, conversation))
    for booking in bookings:
        await steps.book(tx, fence, booking)
    await _settle(tx, fence, worker, conversation, standing)
    return standing


async def _stop_of(tx: AsyncConnection, fence: Fence, conversation: Row[Any]) -> Mark | None:
    """Who stopped this turn; not looked for where nothing was ever decided that raises a signal."""
    return None if conversation.signal_seq == 0 else await tombstone(tx, fence.turn_id)


async def _settle(
    tx: AsyncConnection, fence: Fence, worker: str, conversation: Row[Any], ending: Ending
) -> None:
    final_event_id = await _insert_final(tx, fence, conversation, ending)
    await _stamp(tx, fence, ending)
    written = await insert_once(
        tx,
        settlements,
        {
            "turn_id": fence.turn_id,
            "conversation_id": fence.conversation_id,
            "reason": ending.reason,
            "cause": ending.cause,
            "final_event_id": final_event_id if ending.reason is Reason.COMPLETED else None,
            "cut_by": ending.by,
            "settled_at": db_now(),
            "worker": worker,
        },
    )
    if not written:
        raise AlreadySettled(fence.turn_id)
    await _tell(tx, fence, conversation, ending, final_event_id)
    if ending.reason is Reason.STOPPED:
        await _after_stop(tx, fence)
    await _free_conversation(tx, fence, conversation, ending)
    if not goes_on(ending.reason) and calls_were_made(conversation):
        await steps.give_up_batch(tx, fence)
    await cards.want(tx, fence.turn_id, urgent=True)


async def _insert_final(
    tx: AsyncConnection, fence: Fence, conversation: Row[Any], ending: Ending
) -> str | None:
    """The last message; the conversation's `next_position` moves on where its row is freed."""
    if ending.message is None:
        return None
    position = conversation.next_position
    event_id = await transcripts.insert(tx, fence.conversation_id, fence.turn_id, position, ending.message)
    await steps.mark_carried(tx, fence.conversation_id)
    await tx.execute(_COUNT_STEP, {"this": fence.turn_id})
    return event_id


_COUNT_STEP = update(turns).where(turns.c.id == bindparam("this")).values(steps=turns.c.steps + 1)


async def _stamp(tx: AsyncConnection, fence: Fence, ending: Ending) -> None:
    """A cut during generation has no batch to close, so its stamp and its settle are one transaction."""
    if REASONS[ending.reason].answered is None and ending.reason is not Reason.STALE:
        await tx.execute(
            update(turns)
            .where(turns.c.id == fence.turn_id, turns.c.stamp.is_(None))
            .values(stamp=ending.reason, stamp_by=ending.by, stamped_at=db_now())
        )


async def _tell(
    tx: AsyncConnection, fence: Fence, conversation: Row[Any], ending: Ending, final_event_id: str | None
) -> None:
    """Queue the answer, or the note that this ending owes the thread."""
    if ending.reason is Reason.COMPLETED and ending.message is not None:
        made = await _cited_calls(tx, fence.conversation_id) if calls_were_made(conversation) else {}
        checked = evidence.checked(ending.message.text, made)
        text = checked.text + (CUT_OFF if ending.cut_off else "")
        await outbox.queue(
            tx, fence.conversation_id, kind="answer", once=f"answer:{fence.turn_id}", text=text,
            turn_id=fence.turn_id, final_event_id=final_event_id,
        )  # fmt: skip
    elif ending.note is not None:
        kind = "partial" if ending.message is not None else str(ending.reason)
        await outbox.queue(
            tx, fence.conversation_id, kind=kind, once=f"note:{fence.turn_id}", text=ending.note,
            turn_id=fence.turn_id,
        )  # fmt: skip


async def _cited_calls(tx: AsyncConnection, conversation_id: str) -> dict[str, CitedCall]:
    rows = (await tx.execute(select(calls).where(calls.c.conversation_id == conversation_id))).all()
    return {
        label: CitedCall(
            label,
            row.tool,
            row.query or preview(row.input),
            row.time_range,
            Outcome(row.outcome or Outcome.UNKNOWN),
        )
        for label, row in ((f"c{row.number}", row) for row in rows)
    }


async def _after_stop(tx: AsyncConnection, fence: Fence) -> None:
    """Unread messages stored before the stop become context; later ones start the next turn."""
    newest = (
        select(tombstones.c.inbox_seq)
        .where(tombstones.c.turn_id == fence.turn_id)
        .order_by(tombstones.c.inbox_seq.desc())
        .limit(1)
    )
    before = (await tx.execute(newest)).scalar()
    if before is not None:
        await unread_to_context(tx, fence.conversation_id, before)


async def _free_conversation(
    tx: AsyncConnection, fence: Fence, conversation: Row[Any], ending: Ending
) -> None:
    values: dict[str, Any] = {"active_turn": None, "lease_owner": None, "lease_expires": 0}
    if ending.message is not None:
        values["next_position"] = conversations.c.next_position + 1
    if goes_on(ending.reason):
        values |= {"resume_turn": fence.turn_id, "resume_since": db_now()}
    if REASONS[ending.reason].afterwards is Afterwards.NEXT_TURN:
        quiet_at = await _last_heard(tx, fence.conversation_id) + conversation.gather_s
        values |= {"gathering_since": db_now(), "not_before": quiet_at}
    if ending.reason is Reason.STEERED and ending.discarded:
        values["discarded_in_a_row"] = conversations.c.discarded_in_a_row + 1
    elif ending.message is not None or not goes_on(ending.reason):
        values["discarded_in_a_row"] = 0
    if ending.reason is Reason.STALE:
        values["lost_in_a_row"] = conversations.c.lost_in_a_row + 1
    elif not goes_on(ending.reason):
        values["lost_in_a_row"] = 0
    await tx.execute(
        update(conversations).where(conversations.c.id == fence.conversation_id).values(**values)
    )


async def _last_heard(tx: AsyncConnection, conversation_id: str) -> float:
    newest = (
        select(inbox.c.received_at)
        .where(inbox.c.conversation_id == conversation_id)
        .order_by(inbox.c.seq.desc())
        .limit(1)
    )
    return float((await tx.execute(newest)).scalar() or 0.0)


# --- dead turns ---------------------------------------------------------------------------------------------


async def dead_turns(tx: AsyncConnection) -> list[str]:
    """Conversations whose turn has lost its worker: the lease has run out."""
    statement = select(conversations.c.id).where(
        conversations.c.active_turn.is_not(None), conversations.c.lease_expires <= db_now()
    )
    return list((await tx.execute(statement)).scalars())


async def settle_dead_turn(
    tx: AsyncConnection, conversation_id: str, worker: str, resume_within_s: float
) -> Ending | None:
    """Settle the turn of a conversation whose lease has run out; None when somebody else was faster.

    The tombstone goes first, then the stamp; else the turn is `stale` and goes on elsewhere, up to a limit.
    Work that lay too long is not resumed. Taking over raises the token, and the old worker can write no more.
    """
    conversation = await lock(tx, conversation_id)
    at = await now(tx)
    if conversation.active_turn is None or conversation.lease_expires > at:
        return None
    fence = Fence(conversation_id, conversation.token + 1, conversation.active_turn)
    await tx.execute(
        update(conversations).where(conversations.c.id == conversation_id).values(token=fence.token)
    )
    turn = (await tx.execute(select(turns).where(turns.c.id == fence.turn_id))).one()
    stamp = None if turn.stamp is None else Mark(Reason(turn.stamp), turn.stamp_by)
    stop = await _stop_of(tx, fence, conversation)
    ending = settle.of_dead_turn(stop, stamp, lost_too_often=gives_up(conversation.lost_in_a_row + 1))
    if goes_on(ending.reason) and at - turn.active_at > resume_within_s:
        ending = settle.lay_too_long(at - turn.active_at)
    await _settle(tx, fence, worker, conversation, ending)
    return ending

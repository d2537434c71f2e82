"""The start transaction: take the messages, open the turn, its card, and what the model is shown first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core import prompt
from core.history import Block, Message, Text, user
from core.inbox import WISHES, Fate, InboxMessage, Receipt, goal_of, shown
from core.policy import Effect
from core.reasons import Reason
from core.resume import CallState, Resumption, on_resume
from core.tools import ToolClass
from storage import cards, steps, transcripts
from storage.engine import db_now
from storage.fence import Fence, pass_through
from storage.statements import new_id
from storage.tables import conversations, inbox, settlements, tombstones, turns

KEEPS_CARD = frozenset({Reason.DRAINED, Reason.STALE})
"""A turn that goes on after these takes its predecessor's card message over, whatever was committed."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of a batch that a dead turn left open, and what becomes of it."""

    id: str
    tool: str
    tool_class: ToolClass
    input: dict[str, Any]
    state: CallState
    resumption: Resumption


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn that has just begun, with all that the engine needs."""

    fence: Fence
    seen: int
    goal: str
    messages: tuple[Message, ...]
    used_call_ids: frozenset[str]
    open_calls: tuple[OpenCall, ...]
    discarded_in_a_row: int


async def start(
    tx: AsyncConnection, fence: Fence, worker: str, gather_s: float, notices: Sequence[str] = ()
) -> StartedTurn | None:
    """Start a turn on a claimed conversation.

    None when there is nothing (left) to do; then the lease is given back.
    """
    conversation = await pass_through(tx, fence)
    before = await _predecessor(tx, conversation)
    wishes = _due(await _waiting_wishes(tx, fence.conversation_id), goes_on=before is not None)
    if before is None and not wishes:
        await _give_back(tx, fence)
        return None
    turn = Fence(fence.conversation_id, fence.token, new_id("turn"))
    goal = before.goal if before is not None else goal_of(wishes[0].text)
    await _insert_turn(tx, turn, worker=worker, conversation=conversation, before=before, goal=goal)
    await _take_or_make_card(tx, turn, before)
    if before is not None and await _is_stopped_already(tx, turn, before):
        wishes = []  # what was written after the stop belongs to the next turn
        await steps.give_up_batch(tx, turn)
    open_batch = await _open_batch(tx, turn, wishes)
    if not open_batch:
        await _show_messages(tx, turn, wishes, notices)
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == turn.conversation_id)
        .values(
            active_turn=turn.turn_id, resume_turn=None, resume_since=None, gathering_since=None, not_before=0,
            gather_s=gather_s,
        )
    )  # fmt: skip
    return StartedTurn(
        turn,
        conversation.signal_seq,
        goal,
        tuple(await transcripts.messages(tx, turn.conversation_id)),
        frozenset(await transcripts.call_ids(tx, turn.conversation_id)),
        open_batch,
        conversation.discarded_in_a_row,
    )


async def _predecessor(tx: AsyncConnection, conversation: Row[Any]) -> Row[Any] | None:
    """The turn that this one goes on with, and why it had ended."""
    if conversation.resume_turn is None:
        return None
    statement = (
        select(turns, settlements.c.reason)
        .join(settlements, settlements.c.turn_id == turns.c.id)
        .where(turns.c.id == conversation.resume_turn)
    )
    return (await tx.execute(statement)).one()


async def _waiting_wishes(tx: AsyncConnection, conversation_id: str) -> list[Row[Any]]:
    statement = (
        select(inbox)
        .where(
            inbox.c.conversation_id == conversation_id,
            inbox.c.fate == Fate.WAITING,
            inbox.c.effect.in_([effect.value for effect in WISHES]),
        )
        .order_by(inbox.c.seq)
    )
    return list((await tx.execute(statement)).all())


def _due(wishes: Sequence[Row[Any]], *, goes_on: bool) -> list[Row[Any]]:
    """What this turn reads: a queued message waits until the work that stood before it has ended."""
    due: list[Row[Any]] = []
    for wish in wishes:
        if wish.effect != Effect.QUEUE:
            goes_on = True
        elif goes_on:
            continue
        due.append(wish)
    return due


async def _give_back(tx: AsyncConnection, fence: Fence) -> None:
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == fence.conversation_id)
        .values(lease_owner=None, lease_expires=0, gathering_since=None)
    )


async def _insert_turn(
    tx: AsyncConnection,
    turn: Fence,
    *,
    worker: str,
    conversation: Row[Any],
    before: Row[Any] | None,
    goal: str,
) -> None:
    count = select(func.count()).where(turns.c.conversation_id == turn.conversation_id)
    number = int((await tx.execute(count)).scalar_one()) + 1
    await tx.execute(
        turns.insert().values(
            id=turn.turn_id,
            conversation_id=turn.conversation_id,
            number=number,
            token=turn.token,
            worker=worker,
            resumes_turn=before.id if before is not None else None,
            analysis=before.analysis if before is not None else turn.turn_id,
            goal=goal,
            started_at=db_now(),
            active_at=db_now(),
            read_up_to=before.read_up_to if before is not None else 0,
            seen=conversation.signal_seq,
        )
    )


async def _take_or_make_card(tx: AsyncConnection, turn: Fence, before: Row[Any] | None) -> None:
    keeps = before is not None and (Reason(before.reason) in KEEPS_CARD or before.steps == 0)
    if before is not None and keeps and before.card_id is not None:
        card_id = before.card_id
        await cards.hand_on(tx, card_id, turn.turn_id)
    else:
        card_id = await cards.create(tx, turn.conversation_id, turn.turn_id)
    await tx.execute(update(turns).where(turns.c.id == turn.turn_id).values(card_id=card_id))


async def _is_stopped_already(tx: AsyncConnection, turn: Fence, before: Row[Any]) -> bool:
    """Whether somebody stopped the work between two turns; the tombstone then names this one."""
    unnamed = (
        tombstones.c.conversation_id == turn.conversation_id,
        tombstones.c.turn_id.is_(None),
        tombstones.c.inbox_seq > before.read_up_to,
    )
    stops = list((await tx.execute(select(tombstones.c.inbox_seq).where(*unnamed))).scalars())
    await tx.execute(update(tombstones).where(*unnamed).values(turn_id=turn.turn_id))
    await tx.execute(update(inbox).where(inbox.c.seq.in_(stops)).values(turn_id=turn.turn_id))
    return bool(stops)


async def _open_batch(tx: AsyncConnection, turn: Fence, wishes: Sequence[Row[Any]]) -> tuple[OpenCall, ...]:
    """The batch to go on with; when a steer waits it is closed without running anything again."""
    rows = await transcripts.batch(tx, turn.conversation_id)
    if rows and any(wish.effect == Effect.STEER for wish in wishes):
        await steps.close_batch(tx, turn, with_context=False)
        return ()
    return tuple(_open_call(row) for row in rows)


def _open_call(row: Row[Any]) -> OpenCall:
    tool_class, state = ToolClass(row.tool_class), CallState(row.state)
    return OpenCall(row.id, row.tool, tool_class, row.input, state, on_resume(tool_class, state))


async def _show_messages(
    tx: AsyncConnection, turn: Fence, wishes: Sequence[Row[Any]], notices: Sequence[str]
) -> None:
    """Append what the model has not seen: context and what people ask for, in time, then our notices."""
    messages = [*(await steps.take_context(tx, turn)), *(steps.as_message(wish) for wish in wishes)]
    await _mark_read(tx, turn, wishes)
    blocks: list[Block] = [shown(message) for message in sorted(messages, key=_when)]
    last = await transcripts.last_role(tx, turn.conversation_id)
    if not blocks and last == "assistant":
        notices = [*notices, "The message that interrupted you was withdrawn. Go on."]
    if blocks or last != "user":
        blocks += [Text(prompt.notice(words)) for words in notices]
    if blocks:
        await transcripts.append(tx, turn.conversation_id, turn.turn_id, user(*blocks))


def _when(message: InboxMessage) -> tuple[float, int]:
    return message.sent_at, message.seq


async def _mark_read(tx: AsyncConnection, turn: Fence, wishes: Sequence[Row[Any]]) -> None:
    seqs = [wish.seq for wish in wishes]
    if not seqs:
        return
    await tx.execute(update(inbox).where(inbox.c.seq.in_(seqs)).values(fate=Fate.READ, turn_id=turn.turn_id))
    await tx.execute(
        update(turns)
        .where(turns.c.id == turn.turn_id, turns.c.read_up_to < max(seqs))
        .values(read_up_to=max(seqs))
    )
    await tx.execute(
        update(inbox)
        .where(inbox.c.seq.in_(seqs), inbox.c.receipt == Receipt.QUEUED)
        .values(receipt=Receipt.TAKEN)
    )


async def known(tx: AsyncConnection, turn_ids: Sequence[str]) -> frozenset[str]:
    """Which of these turns the records know."""
    return frozenset((await tx.execute(select(turns.c.id).where(turns.c.id.in_(turn_ids)))).scalars())

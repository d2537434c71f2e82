"""The start transaction: take the messages, open the turn, its card, and what the model is shown first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, bindparam, case, func, or_, select, update
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
from storage.steps import calls_were_made
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
    unread = await _unread(tx, fence.conversation_id)
    wishes = _due(unread.wishes, goes_on=before is not None)
    if before is None and not wishes:
        await _give_back(tx, fence)
        return None
    turn = Fence(fence.conversation_id, fence.token, new_id("turn"))
    stopped = before is not None and await _is_stopped_already(tx, turn, conversation, before)
    if stopped:
        wishes = []  # what was written after the stop belongs to the next turn
    batch = await transcripts.batch(tx, turn.conversation_id) if calls_were_made(conversation) else []
    goes_on = bool(batch) and not stopped and all(wish.effect != Effect.STEER for wish in wishes)
    if goes_on:
        wishes = []  # they are read when the batch is closed
    goal = before.goal if before is not None else goal_of(wishes[0].text)
    await _open_turn(tx, turn, worker, conversation, before, goal=goal, read=wishes)
    if batch and not goes_on:
        await steps.close_batch(tx, turn, with_context=False)
    said = await _said(tx, turn, conversation)
    message = None if goes_on else _message(said, unread.context, wishes, notices)
    if not goes_on:
        await steps.mark_shown(tx, turn, unread.context)
        await _mark_read(tx, turn, wishes)
    await _take_conversation(tx, turn, message, gather_s)
    return StartedTurn(
        turn,
        conversation.signal_seq,
        goal,
        (*said, message) if message is not None else tuple(said),
        await _used_call_ids(tx, conversation),
        tuple(_open_call(row) for row in batch) if goes_on else (),
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


@dataclass(frozen=True, slots=True)
class _Unread:
    """What no request has shown yet."""

    wishes: list[Row[Any]]
    context: list[Row[Any]]


_IS_WISH = (inbox.c.fate == Fate.WAITING, inbox.c.effect.in_([effect.value for effect in WISHES]))
_IS_CONTEXT = (inbox.c.fate == Fate.CONTEXT, inbox.c.turn_id.is_(None))
_SELECT_UNREAD = (
    select(inbox)
    .where(inbox.c.conversation_id == bindparam("this"), or_(and_(*_IS_WISH), and_(*_IS_CONTEXT)))
    .order_by(inbox.c.seq)
)


async def _unread(tx: AsyncConnection, conversation_id: str) -> _Unread:
    rows = (await tx.execute(_SELECT_UNREAD, {"this": conversation_id})).all()
    context = [row for row in rows if row.fate == Fate.CONTEXT]
    return _Unread([row for row in rows if row.fate != Fate.CONTEXT], context)


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


async def _open_turn(
    tx: AsyncConnection,
    turn: Fence,
    worker: str,
    conversation: Row[Any],
    before: Row[Any] | None,
    *,
    goal: str,
    read: Sequence[Row[Any]],
) -> None:
    """The turn's row, and its card: a new one, or that of the turn with which it goes on."""
    kept = _kept_card(before)
    card_id = kept or new_id("card")
    read_before = before.read_up_to if before is not None else 0
    await tx.execute(
        _INSERT_TURN,
        {
            "id": turn.turn_id,
            "conversation_id": turn.conversation_id,
            "this": turn.conversation_id,
            "token": turn.token,
            "worker": worker,
            "resumes_turn": before.id if before is not None else None,
            "analysis": before.analysis if before is not None else turn.turn_id,
            "goal": goal,
            "read_up_to": max([read_before, *(wish.seq for wish in read)]),
            "seen": conversation.signal_seq,
            "card_id": card_id,
        },
    )
    if kept is not None:
        await cards.hand_on(tx, card_id, turn.turn_id)
    else:
        await cards.create(tx, card_id, turn.conversation_id, turn.turn_id)


_NEXT_NUMBER = (
    select(func.coalesce(func.max(turns.c.number), 0) + 1)
    .where(turns.c.conversation_id == bindparam("this"))
    .scalar_subquery()
)
_INSERT_TURN = turns.insert().values(number=_NEXT_NUMBER, started_at=db_now(), active_at=db_now())


def _kept_card(before: Row[Any] | None) -> str | None:
    if before is None or not (Reason(before.reason) in KEEPS_CARD or before.steps == 0):
        return None
    return None if before.card_id is None else str(before.card_id)


async def _is_stopped_already(
    tx: AsyncConnection, turn: Fence, conversation: Row[Any], before: Row[Any]
) -> bool:
    """Whether somebody stopped the work between two turns; the tombstone then names this one."""
    if conversation.signal_seq == 0:
        return False  # nobody has ever stopped anything here
    named = (
        update(tombstones)
        .where(
            tombstones.c.conversation_id == turn.conversation_id,
            tombstones.c.turn_id.is_(None),
            tombstones.c.inbox_seq > before.read_up_to,
        )
        .values(turn_id=turn.turn_id)
        .returning(tombstones.c.inbox_seq)
    )
    stops = list((await tx.execute(named)).scalars())
    if stops:
        await tx.execute(update(inbox).where(inbox.c.seq.in_(stops)).values(turn_id=turn.turn_id))
    return bool(stops)


def _open_call(row: Row[Any]) -> OpenCall:
    tool_class, state = ToolClass(row.tool_class), CallState(row.state)
    return OpenCall(row.id, row.tool, tool_class, row.input, state, on_resume(tool_class, state))


async def _said(tx: AsyncConnection, turn: Fence, conversation: Row[Any]) -> list[Message]:
    """The transcript so far."""
    return await transcripts.messages(tx, turn.conversation_id) if conversation.next_position else []


async def _used_call_ids(tx: AsyncConnection, conversation: Row[Any]) -> frozenset[str]:
    return frozenset(await transcripts.call_ids(tx, conversation.id) if calls_were_made(conversation) else ())


def _message(
    said: Sequence[Message],
    context: Sequence[Row[Any]],
    wishes: Sequence[Row[Any]],
    notices: Sequence[str],
) -> Message | None:
    """What the model has not seen: context and what people ask for, in time, then our notices."""
    messages = [steps.as_message(row) for row in (*context, *wishes)]
    blocks: list[Block] = [shown(message) for message in sorted(messages, key=_when)]
    last = said[-1].role if said else None
    if not blocks and last == "assistant":
        notices = [*notices, "The message that interrupted you was withdrawn. Go on."]
    if blocks or last != "user":
        blocks += [Text(prompt.notice(words)) for words in notices]
    return user(*blocks) if blocks else None


def _when(message: InboxMessage) -> tuple[float, int]:
    return message.sent_at, message.seq


async def _mark_read(tx: AsyncConnection, turn: Fence, wishes: Sequence[Row[Any]]) -> None:
    if not wishes:
        return
    taken = case((inbox.c.receipt == Receipt.QUEUED, Receipt.TAKEN.value), else_=inbox.c.receipt)
    await tx.execute(
        update(inbox)
        .where(inbox.c.seq.in_([wish.seq for wish in wishes]))
        .values(fate=Fate.READ, turn_id=turn.turn_id, receipt=taken)
    )


async def _take_conversation(
    tx: AsyncConnection, turn: Fence, message: Message | None, gather_s: float
) -> None:
    """The conversation works on this turn now; the message, if there is one, becomes its newest."""
    c = conversations.c
    taken = (
        update(conversations)
        .where(c.id == turn.conversation_id)
        .values(
            active_turn=turn.turn_id, resume_turn=None, resume_since=None, gathering_since=None, not_before=0,
            gather_s=gather_s, next_position=c.next_position + (0 if message is None else 1),
        )
        .returning(c.next_position)
    )  # fmt: skip
    next_position = int((await tx.execute(taken)).scalar_one())
    if message is not None:
        await transcripts.insert(tx, turn.conversation_id, turn.turn_id, next_position - 1, message)


async def known(tx: AsyncConnection, turn_ids: Sequence[str]) -> frozenset[str]:
    """Which of these turns the records know."""
    return frozenset((await tx.execute(select(turns.c.id).where(turns.c.id.in_(turn_ids)))).scalars())

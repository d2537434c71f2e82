"""The transactions of a step: commit, begin, result, close. Each is atomic and fenced.

Rule: no call is opened after a steer or stop was decided. The commit compares `signal_seq` with what the turn
has seen, under the lock that a decision takes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core import prompt
from core.arrivals import AuthorRole, Source
from core.errors import RuleBroken
from core.history import Block, Json, Message, Result, user
from core.inbox import Fate, InboxMessage, Receipt, shown
from core.policy import Effect
from core.resume import CallState, closed_unrun
from core.signals import STAMP, Held, Signal
from core.tools import CallResult, Outcome, ToolClass
from core.usage import Usage
from storage import cards, outbox, transcripts
from storage.engine import db_now
from storage.errors import Signalled
from storage.fence import Fence, pass_through
from storage.signals import first_held
from storage.tables import calls, conversations, inbox, requests, turns

CLOSED_UNRUN = frozenset({Outcome.NOT_EXECUTED, Outcome.UNKNOWN})
"""Outcomes of calls that never ran or were lost: no progress, so a worker that is lost again still counts."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call about to be committed; `result` is set for one that will never be run."""

    id: str
    tool: str
    tool_class: ToolClass
    input: Mapping[str, Json]
    limit_s: float
    result: CallResult | None = None


@dataclass(frozen=True, slots=True)
class Booking:
    """A model request to book."""

    model: str
    usage: Usage
    purpose: str = "step"


async def book(tx: AsyncConnection, fence: Fence, booking: Booking) -> None:
    """Book what one model request cost. Not fenced: the money is spent whoever owns the conversation now."""
    usage = booking.usage
    await tx.execute(
        _BOOK,
        {
            "conversation_id": fence.conversation_id,
            "turn_id": fence.turn_id,
            "model": booking.model,
            "purpose": booking.purpose,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cost_usd": usage.cost_usd,
            "exact": usage.exact,
        },
    )


_BOOK = requests.insert().values(at=db_now())


async def refuse_when_signalled(
    tx: AsyncConnection, fence: Fence, conversation: Row[Any], seen: int, *, past_steers: bool = False
) -> None:
    """Raise Signalled when a steer or stop that still holds was decided after the turn had last looked."""
    if conversation.signal_seq == seen:
        return
    held = await first_held(tx, fence)
    if held is not None and not (past_steers and held.signal is Signal.STEER):
        raise Signalled(held)


async def commit(
    tx: AsyncConnection,
    fence: Fence,
    message: Message,
    planned: Sequence[PlannedCall],
    bookings: Sequence[Booking],
    *,
    seen: int,
    past_steers: bool,
) -> None:
    """Commit an assistant message and its calls; raises Signalled when a steer or stop was decided first.

    Calls that may be repeated are marked started here, since they are sent at once.
    """
    conversation = await pass_through(tx, fence)
    await refuse_when_signalled(tx, fence, conversation, seen, past_steers=past_steers)
    position, first = conversation.next_position, conversation.next_call
    await transcripts.insert(tx, fence.conversation_id, fence.turn_id, position, message)
    turn = await _progress(tx, fence, steps=turns.c.steps + 1)
    await tx.execute(
        calls.insert(),
        [
            _call_row(
                fence, call, position=position, step=turn.steps, number=first + index, at=turn.active_at
            )
            for index, call in enumerate(planned)
        ],
    )
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == fence.conversation_id)
        .values(
            next_position=position + 1, next_call=first + len(planned), lost_in_a_row=0, discarded_in_a_row=0
        )
    )
    for booking in bookings:
        await book(tx, fence, booking)
    await mark_carried(tx, fence.conversation_id)


def _call_row(
    fence: Fence, call: PlannedCall, *, position: int, step: int, number: int, at: float
) -> dict[str, Any]:
    at_once = call.tool_class is not ToolClass.SIDE_EFFECT
    state = CallState.DONE if call.result else CallState.STARTED if at_once else CallState.ISSUED
    return {
        "conversation_id": fence.conversation_id,
        "id": call.id,
        "number": number,
        "turn_id": fence.turn_id,
        "position": position,
        "step": step,
        "tool": call.tool,
        "tool_class": call.tool_class,
        "input": dict(call.input),
        "state": state,
        "closed": False,
        "attempts": 1 if state is CallState.STARTED else 0,
        "limit_s": call.limit_s,
        "started_at": at if state is not CallState.ISSUED else None,
        "finished_at": at if state is CallState.DONE else None,
        "outcome": call.result.outcome if call.result else None,
        "result": call.result.text if call.result else None,
    }


async def mark_carried(tx: AsyncConnection, conversation_id: str) -> None:
    """A request that carried these messages has led to something committed: their writers see it."""
    await tx.execute(_MARK_CARRIED, {"this": conversation_id})


_MARK_CARRIED = (
    update(inbox)
    .where(
        inbox.c.conversation_id == bindparam("this"),
        inbox.c.fate == Fate.READ,
        inbox.c.effect != Effect.STOP,
        inbox.c.receipt.in_([Receipt.TAKEN.value, Receipt.QUEUED.value]),
    )
    .values(receipt=Receipt.DONE)
)


async def _progress(tx: AsyncConnection, fence: Fence, **values: Any) -> Row[Any]:
    """The turn lives and its card shows it; returns how many steps it has and when this was."""
    turn = await tx.execute(
        update(turns)
        .where(turns.c.id == fence.turn_id)
        .values(active_at=db_now(), activity="", **values)
        .returning(turns.c.steps, turns.c.active_at)
    )
    await cards.want(tx, fence.turn_id)
    return turn.one()


async def begin(tx: AsyncConnection, fence: Fence, call_id: str) -> None:
    """Mark a call as started, before it is sent; RuleBroken for a side effect that was started before."""
    await pass_through(tx, fence)
    may_start = or_(calls.c.tool_class != ToolClass.SIDE_EFFECT, calls.c.state == CallState.ISSUED)
    begun = await tx.execute(
        update(calls)
        .where(calls.c.conversation_id == fence.conversation_id, calls.c.id == call_id)
        .where(calls.c.state != CallState.DONE, may_start)
        .values(
            state=CallState.STARTED,
            attempts=calls.c.attempts + 1,
            started_at=db_now(),
        )
    )
    if begun.rowcount != 1:
        raise RuleBroken(f"{call_id} was started a second time")
    await cards.want(tx, fence.turn_id)


async def record_result(tx: AsyncConnection, fence: Fence, call_id: str, result: CallResult) -> None:
    """Commit the result of one call as it returns, with its charts for the thread."""
    conversation = await pass_through(tx, fence)
    this = (calls.c.conversation_id == fence.conversation_id, calls.c.id == call_id)
    await tx.execute(
        update(calls)
        .where(*this, calls.c.state != CallState.DONE)
        .values(
            state=CallState.DONE,
            outcome=result.outcome,
            result=result.text,
            query=result.query,
            time_range=result.time_range,
            finished_at=db_now(),
        )
    )
    for index, chart in enumerate(result.charts):
        await outbox.queue(
            tx,
            fence.conversation_id,
            kind="chart",
            once=f"chart:{fence.conversation_id}:{call_id}:{index}",
            text=chart.title,
            turn_id=fence.turn_id,
            picture=chart.png,
        )
    if result.outcome not in CLOSED_UNRUN and conversation.lost_in_a_row:
        await tx.execute(
            update(conversations).where(conversations.c.id == fence.conversation_id).values(lost_in_a_row=0)
        )
    await _progress(tx, fence)


async def close(tx: AsyncConnection, fence: Fence, stamp: Held | None) -> Message:
    """Put the batch's results into the transcript, unread context behind them; stamp the turn when cut."""
    await pass_through(tx, fence)
    message = await close_batch(tx, fence)
    if stamp is not None:
        await stamp_turn(tx, fence.turn_id, stamp)
    await _progress(tx, fence)
    return message


async def close_batch(tx: AsyncConnection, fence: Fence, *, with_context: bool = True) -> Message:
    """Append a user message that answers every call of the open batch; unanswered ones are closed unrun."""
    rows = await transcripts.batch(tx, fence.conversation_id)
    results: list[Block] = [_result_of(row) for row in rows]
    context = await take_context(tx, fence) if with_context else []
    message = user(*results, *(shown(each) for each in context))
    await transcripts.append(tx, fence.conversation_id, fence.turn_id, message)
    for row in rows:
        if row.state == CallState.DONE:
            continue
        unrun = closed_unrun(CallState(row.state))
        await tx.execute(
            update(calls)
            .where(calls.c.conversation_id == fence.conversation_id, calls.c.id == row.id)
            .values(state=CallState.DONE, outcome=unrun.outcome, result=unrun.text, finished_at=db_now())
        )
    await tx.execute(
        update(calls)
        .where(calls.c.conversation_id == fence.conversation_id, calls.c.closed.is_(False))
        .values(closed=True)
    )
    return message


def calls_were_made(conversation: Row[Any]) -> bool:
    """Whether there is any call in this conversation, open or not."""
    return bool(conversation.next_call > 1)


async def give_up_batch(tx: AsyncConnection, fence: Fence) -> None:
    """At rest no call is open: a batch that nobody will go on with is closed without running anything."""
    if await transcripts.batch(tx, fence.conversation_id):
        await close_batch(tx, fence, with_context=False)


def _result_of(row: Row[Any]) -> Result:
    if row.state != CallState.DONE:
        unrun = closed_unrun(CallState(row.state))
        return Result(row.id, prompt.tool_output(f"c{row.number}", row.tool, unrun.text), is_error=True)
    shown_text = prompt.tool_output(f"c{row.number}", row.tool, row.result or "(no output)")
    return Result(row.id, shown_text, is_error=row.outcome != Outcome.OK)


async def take_context(tx: AsyncConnection, fence: Fence) -> list[InboxMessage]:
    """Context that no request has shown yet; it is shown with the next one."""
    where = (
        inbox.c.conversation_id == fence.conversation_id,
        inbox.c.fate == Fate.CONTEXT,
        inbox.c.turn_id.is_(None),
    )
    rows = (await tx.execute(select(inbox).where(*where).order_by(inbox.c.sent_at, inbox.c.seq))).all()
    await mark_shown(tx, fence, rows)
    return [as_message(row) for row in rows]


async def mark_shown(tx: AsyncConnection, fence: Fence, context: Sequence[Row[Any]]) -> None:
    """This turn shows this context to the model."""
    if context:
        seqs = [row.seq for row in context]
        await tx.execute(update(inbox).where(inbox.c.seq.in_(seqs)).values(turn_id=fence.turn_id))


def as_message(row: Row[Any]) -> InboxMessage:
    """The inbox message of a decided row."""
    return InboxMessage(
        row.seq,
        Source(row.source),
        AuthorRole(row.role),
        row.author_name or row.author_id,
        row.text,
        Effect.CONTEXT
        if row.fate == Fate.CONTEXT
        else Effect(row.effect),  # what was stopped asks for nothing
        row.sent_at,
    )


async def stamp_turn(tx: AsyncConnection, turn_id: str, held: Held) -> None:
    """The durable mark of a cut, made at the moment of the cut."""
    await tx.execute(
        update(turns)
        .where(turns.c.id == turn_id, turns.c.stamp.is_(None))
        .values(stamp=STAMP[held.signal], stamp_by=held.by, stamped_at=db_now())
    )


async def say(tx: AsyncConnection, fence: Fence, activity: str, bookings: Sequence[Booking] = ()) -> None:
    """What the turn is doing now, for the card; and what failed requests cost."""
    await pass_through(tx, fence)
    for booking in bookings:
        await book(tx, fence, booking)
    await tx.execute(
        update(turns).where(turns.c.id == fence.turn_id).values(activity=activity[:400], active_at=db_now())
    )
    await cards.want(tx, fence.turn_id)

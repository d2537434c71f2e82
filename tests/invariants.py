"""The laws of the database: what must hold whatever happened, in motion and at rest.

At rest nothing runs, nothing waits and the platform has taken everything. Each law is one function that names
what breaks it; `broken` asks them all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from sqlalchemy import Row, Table, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from core.history import Call, Result, message_from_json
from core.inbox import Fate, Receipt
from core.policy import Effect
from core.reasons import Reason, goes_on, needs_final_event
from core.resume import CallState
from core.tools import Outcome, ToolClass
from storage.engine import Database
from storage.tables import (
    calls,
    cards,
    conversations,
    inbox,
    outbox,
    requests,
    settlements,
    tombstones,
    transcript,
    turns,
)

Law = Callable[[AsyncConnection], Awaitable[list[str]]]


async def broken(database: Database, *, at_rest: bool = False) -> list[str]:
    """Every law that this database breaks, each with what breaks it; empty when all hold."""
    return await database.read(_broken, at_rest)


async def _broken(tx: AsyncConnection, at_rest: bool) -> list[str]:
    laws = (*ALWAYS, *AT_REST) if at_rest else ALWAYS
    return [f"{law.__name__}: {what}" for law in laws for what in await law(tx)]


async def _rows(tx: AsyncConnection, statement: Any) -> list[Row[Any]]:
    return list((await tx.execute(statement)).all())


async def _all(tx: AsyncConnection, table: Table) -> list[Row[Any]]:
    return await _rows(tx, select(table).order_by(*table.primary_key.columns))


# --- always ---------------------------------------------------------------------------------------------


async def at_most_one_turn_runs(tx: AsyncConnection) -> list[str]:
    """Of a conversation only the active turn has no settle record, and the active turn has none."""
    statement = (
        select(turns.c.id, conversations.c.active_turn, settlements.c.reason)
        .join(conversations, conversations.c.id == turns.c.conversation_id)
        .outerjoin(settlements, settlements.c.turn_id == turns.c.id)
    )
    return [
        f"{row.id} is {'settled' if row.reason else 'not settled'} and "
        f"{'active' if row.id == row.active_turn else 'not active'}"
        for row in await _rows(tx, statement)
        if (row.reason is None) is not (row.id == row.active_turn)
    ]


async def every_reason_is_known(tx: AsyncConnection) -> list[str]:
    """A settle record bears one of the reasons of the table, and so does a stamp."""
    known = {reason.value for reason in Reason}
    found = [row.turn_id for row in await _all(tx, settlements) if row.reason not in known]
    return found + [row.id for row in await _all(tx, turns) if row.stamp not in {None, *known}]


async def a_completed_turn_names_its_final_message(tx: AsyncConnection) -> list[str]:
    """A completed turn, and no other, names a message of the transcript: its own last one, by the model."""
    last = {row.turn_id: row for row in await _all(tx, transcript)}
    found = []
    for row in await _all(tx, settlements):
        if not needs_final_event(Reason(row.reason)):
            found += [f"{row.turn_id} is {row.reason} with a final message"] if row.final_event_id else []
            continue
        final = last.get(row.turn_id)
        if final is None or (final.id, final.role) != (row.final_event_id, "assistant"):
            found.append(f"{row.turn_id}: {row.final_event_id} is not its last message")
    return found


async def a_completed_turn_owes_one_answer(tx: AsyncConnection) -> list[str]:
    """For each completed turn, and no other, one answer was queued, with its final message."""
    queued = {row.turn_id: row.final_event_id for row in await _all(tx, outbox) if row.kind == "answer"}
    completed = {
        row.turn_id: row.final_event_id
        for row in await _all(tx, settlements)
        if row.reason == Reason.COMPLETED
    }
    return [turn for turn in {**queued, **completed} if queued.get(turn) != completed.get(turn)]


async def a_stop_stands(tx: AsyncConnection) -> list[str]:
    """A settled turn with a tombstone is `stopped`."""
    statement = (
        select(settlements.c.turn_id, settlements.c.reason)
        .join(tombstones, tombstones.c.turn_id == settlements.c.turn_id)
        .where(settlements.c.reason != Reason.STOPPED)
    )
    return [f"{row.turn_id} is {row.reason}" for row in await _rows(tx, statement)]


async def tokens_only_rise(tx: AsyncConnection) -> list[str]:
    """A later turn has a higher token, and the conversation's is at least that of its last turn."""
    found = []
    statement = select(turns).order_by(turns.c.conversation_id, turns.c.number)
    rows = await _rows(tx, statement)
    for before, after in pairwise(rows):
        if before.conversation_id == after.conversation_id and before.token >= after.token:
            found.append(f"{after.id} has {after.token} after {before.token}")
    highest = {row.conversation_id: row.token for row in rows}
    for row in await _all(tx, conversations):
        if row.token < highest.get(row.id, 0):
            found.append(f"{row.id} has {row.token}")
    return found


async def turns_are_numbered_in_a_row(tx: AsyncConnection) -> list[str]:
    """The turns of a conversation are numbered from 1 without a gap."""
    numbers: dict[str, list[int]] = {}
    for row in await _rows(tx, select(turns).order_by(turns.c.number)):
        numbers.setdefault(row.conversation_id, []).append(row.number)
    return [key for key, found in numbers.items() if found != list(range(1, len(found) + 1))]


async def what_goes_on_goes_on_once(tx: AsyncConnection) -> list[str]:
    """A turn resumes only what goes on, and nothing is resumed twice."""
    reasons = {row.turn_id: Reason(row.reason) for row in await _all(tx, settlements)}
    resumed = [row.resumes_turn for row in await _all(tx, turns) if row.resumes_turn is not None]
    found = [f"{turn} was resumed" for turn in resumed if turn not in reasons or not goes_on(reasons[turn])]
    return found + [f"{turn} was resumed twice" for turn in set(resumed) if resumed.count(turn) > 1]


async def every_call_is_answered_right_behind(tx: AsyncConnection) -> list[str]:
    """Each call has exactly one result, in the very next message; only those of the last one may be open."""
    found = []
    by_conversation: dict[str, list[Row[Any]]] = {}
    for row in await _all(tx, transcript):
        by_conversation.setdefault(row.conversation_id, []).append(row)
    for conversation, rows in by_conversation.items():
        if [row.position for row in rows] != list(range(len(rows))):
            found.append(f"{conversation} has a gap")
        asked: list[str] = []
        for row in rows:
            message = message_from_json(row.role, row.blocks)
            answered = [block.call_id for block in message.blocks if isinstance(block, Result)]
            if sorted(answered) != sorted(asked):
                found.append(f"{row.id} answers {answered}, asked was {asked}")
            asked = [block.id for block in message.blocks if isinstance(block, Call)]
    return found


async def calls_and_transcript_agree(tx: AsyncConnection) -> list[str]:
    """The calls table holds exactly the calls of the transcript, and a closed one has its result there."""
    said: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    for row in await _all(tx, transcript):
        for block in message_from_json(row.role, row.blocks).blocks:
            if isinstance(block, Call):
                said.add((row.conversation_id, block.id))
            elif isinstance(block, Result):
                answered.add((row.conversation_id, block.call_id))
    rows = await _all(tx, calls)
    known = {(row.conversation_id, row.id) for row in rows}
    closed = {(row.conversation_id, row.id) for row in rows if row.closed}
    return [f"{key} in one only" for key in sorted(said ^ known)] + [
        f"{key} is closed in one only" for key in sorted(closed ^ answered)
    ]


async def calls_are_numbered_once(tx: AsyncConnection) -> list[str]:
    """The number by which evidence names a call belongs to one call of the conversation."""
    numbers = [(row.conversation_id, row.number) for row in await _all(tx, calls)]
    return [f"{key} twice" for key in sorted(set(numbers)) if numbers.count(key) > 1]


async def one_batch_is_open_and_somebody_has_it(tx: AsyncConnection) -> list[str]:
    """Open calls are of one batch, which a turn runs or its successor will close."""
    open_batches: dict[str, set[int]] = {}
    for row in await _all(tx, calls):
        if not row.closed:
            open_batches.setdefault(row.conversation_id, set()).add(row.position)
    held = {row.id for row in await _all(tx, conversations) if row.active_turn or row.resume_turn}
    return [
        f"{key}: {sorted(positions)}"
        for key, positions in open_batches.items()
        if len(positions) > 1 or key not in held
    ]


async def a_side_effect_is_started_at_most_once(tx: AsyncConnection) -> list[str]:
    """No side-effecting call was started twice."""
    twice = select(calls).where(calls.c.tool_class == ToolClass.SIDE_EFFECT, calls.c.attempts > 1)
    return [f"{row.id} was started {row.attempts} times" for row in await _rows(tx, twice)]


async def a_call_that_is_done_says_how(tx: AsyncConnection) -> list[str]:
    """Exactly the calls that are done have an outcome, and one that ran was started."""
    never_ran = (Outcome.NOT_EXECUTED, Outcome.UNKNOWN)
    found = []
    for row in await _all(tx, calls):
        if (row.state == CallState.DONE) is not (row.outcome is not None):
            found.append(f"{row.id} is {row.state} with {row.outcome}")
        elif row.outcome is not None and row.attempts == 0 and row.outcome not in never_ran:
            found.append(f"{row.id} is {row.outcome} and was never started")
    return found


async def every_message_has_one_effect(tx: AsyncConnection) -> list[str]:
    """A decided message has effect, rule and time; the fate fits the effect; what was read names its turn."""
    found = []
    for row in await _all(tx, inbox):
        decided = {row.effect is not None, row.rule is not None, row.decided_at is not None}
        if len(decided) != 1:
            found.append(f"{row.key} is half decided")
        if row.fate not in {fate.value for fate in Fate}:
            found.append(f"{row.key} is {row.fate}")
        if (row.effect == Effect.DENY) is not (row.fate == Fate.DENIED):
            found.append(f"{row.key} is {row.effect} and {row.fate}")
        if row.fate == Fate.READ and row.turn_id is None and row.effect != Effect.STOP:
            found.append(f"{row.key} was read by no turn")
        if row.receipt == Receipt.DONE and row.fate != Fate.READ:
            found.append(f"{row.key} is ticked off and {row.fate}")
    return found


async def every_step_was_paid_for(tx: AsyncConnection) -> list[str]:
    """A turn has booked at least one request for each of its steps and for its final message."""
    booked: dict[str, int] = {}
    for row in await _all(tx, requests):
        if row.purpose == "step":
            booked[row.turn_id] = booked.get(row.turn_id, 0) + 1
    said: dict[str, int] = {}
    for row in await _all(tx, transcript):
        if row.role == "assistant":
            said[row.turn_id] = said.get(row.turn_id, 0) + 1
    return [
        f"{turn} said {n}, paid {booked.get(turn, 0)}" for turn, n in said.items() if booked.get(turn, 0) < n
    ]


async def every_turn_has_its_card(tx: AsyncConnection) -> list[str]:
    """Each turn names a card of its conversation, which belongs to it or to a later turn."""
    all_cards = {row.id: row for row in await _all(tx, cards)}
    all_turns = {row.id: row for row in await _all(tx, turns)}
    found = []
    for turn in all_turns.values():
        card = all_cards.get(turn.card_id or "")
        owner = None if card is None else all_turns[card.turn_id]
        if owner is None or owner.conversation_id != turn.conversation_id or owner.number < turn.number:
            found.append(turn.id)
    return found


# --- at rest --------------------------------------------------------------------------------------------


async def nothing_runs(tx: AsyncConnection) -> list[str]:
    """No conversation has an active turn, a turn to resume or a lease."""
    busy = or_(
        conversations.c.active_turn.is_not(None),
        conversations.c.resume_turn.is_not(None),
        conversations.c.lease_owner.is_not(None),
    )
    return [row.id for row in await _rows(tx, select(conversations).where(busy))]


async def no_message_waits(tx: AsyncConnection) -> list[str]:
    """Every message is decided, and none waits to be read."""
    return [row.key for row in await _rows(tx, select(inbox).where(inbox.c.fate == Fate.WAITING))]


async def no_batch_is_open(tx: AsyncConnection) -> list[str]:
    """Every call is done and closed."""
    open_calls = or_(calls.c.closed.is_(False), calls.c.state != CallState.DONE)
    return [row.id for row in await _rows(tx, select(calls).where(open_calls))]


async def every_card_is_released(tx: AsyncConnection) -> list[str]:
    """The platform has taken the released state of every settled turn's card, and nothing newer is wanted."""
    given_up = {row.id for row in await _all(tx, cards) if row.given_up}
    card_of = {row.id: row.card_id for row in await _all(tx, turns)}
    found = [
        f"{row.turn_id} was not released"
        for row in await _all(tx, settlements)
        if row.card_released_at is None and card_of[row.turn_id] not in given_up
    ]
    behind = select(cards).where(cards.c.wanted > cards.c.shown, cards.c.given_up.is_(None))
    return found + [f"{row.id} is at {row.shown} of {row.wanted}" for row in await _rows(tx, behind)]


async def every_answer_is_posted(tx: AsyncConnection) -> list[str]:
    """An answer was posted exactly for the completed turns, unless the platform will never take it."""
    given_up = {row.turn_id for row in await _all(tx, outbox) if row.kind == "answer" and row.given_up}
    return [
        row.turn_id
        for row in await _all(tx, settlements)
        if (row.reason == Reason.COMPLETED) is not (row.answer_posted_at is not None)
        and row.turn_id not in given_up
    ]


async def nothing_is_left_to_say(tx: AsyncConnection) -> list[str]:
    """The outbox holds nothing open."""
    return [row.once for row in await _rows(tx, select(outbox).where(outbox.c.done_at.is_(None)))]


async def every_receipt_is_shown(tx: AsyncConnection) -> list[str]:
    """Every message bears the reaction that it should."""
    differs = inbox.c.receipt.is_distinct_from(inbox.c.receipt_shown)
    shown = inbox.c.message_ref.is_not(None) & (inbox.c.fate != Fate.REPLACED)
    statement = select(inbox).where(differs, shown)
    return [f"{row.key}: {row.receipt}, not {row.receipt_shown}" for row in await _rows(tx, statement)]


ALWAYS: tuple[Law, ...] = (
    at_most_one_turn_runs,
    every_reason_is_known,
    a_completed_turn_names_its_final_message,
    a_completed_turn_owes_one_answer,
    a_stop_stands,
    tokens_only_rise,
    turns_are_numbered_in_a_row,
    what_goes_on_goes_on_once,
    every_call_is_answered_right_behind,
    calls_and_transcript_agree,
    calls_are_numbered_once,
    one_batch_is_open_and_somebody_has_it,
    a_side_effect_is_started_at_most_once,
    a_call_that_is_done_says_how,
    every_message_has_one_effect,
    every_step_was_paid_for,
    every_turn_has_its_card,
)

AT_REST: tuple[Law, ...] = (
    nothing_runs,
    no_message_waits,
    no_batch_is_open,
    every_card_is_released,
    every_answer_is_posted,
    nothing_is_left_to_say,
    every_receipt_is_shown,
)

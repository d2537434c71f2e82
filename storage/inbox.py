"""Messages that arrive: stored once, before they are acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Row, case, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Arrival, AuthorRole, Deletion, EarlierMessage, Edit, Source
from core.inbox import WISHES, Fate
from core.policy import Effect
from storage import changes
from storage.engine import db_now
from storage.statements import insert_all_once, insert_once, now
from storage.tables import conversations, inbox, turns

LATE_S = 2.0
"""A message that was delivered again after a failure comes so late, or later."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What came of storing: `seq` is None when nothing was (a duplicate, or none of our business)."""

    conversation_id: str
    seq: int | None
    unknown_turn: bool = False  # a Stop button of a turn that these records do not know


async def ingest(tx: AsyncConnection, incoming: Sequence[Arrival | Edit | Deletion]) -> list[Stored]:
    """Store what came in, in order; a message once, however often and in whatever event it comes."""
    at = await now(tx)
    stored: list[Stored] = []
    for is_plain, some in groupby(incoming, _is_plain):
        if is_plain:
            stored += await _arrive(tx, [one for one in some if isinstance(one, Arrival)], at)
        else:
            stored += [await _ingest_one(tx, one, at) for one in some]
    return stored


def _is_plain(incoming: Arrival | Edit | Deletion) -> bool:
    """Whether nothing but its conversation need be looked at: such arrivals are stored many at once."""
    return isinstance(incoming, Arrival) and incoming.stops_turn is None


async def _ingest_one(tx: AsyncConnection, incoming: Arrival | Edit | Deletion, at: float) -> Stored:
    match incoming:
        case Arrival():
            return await _click(tx, incoming, at)
        case Edit():
            return Stored(incoming.thread.conversation_id, await changes.edit(tx, incoming, at))
        case Deletion():
            return Stored(incoming.thread.conversation_id, await changes.delete(tx, incoming, at))


async def _click(tx: AsyncConnection, arrival: Arrival, at: float) -> Stored:
    """A button of a turn, which these records may not know."""
    if arrival.stops_turn is not None and not await _turn_exists(tx, arrival.stops_turn):
        return Stored(arrival.thread.conversation_id, None, unknown_turn=True)
    return (await _arrive(tx, [arrival], at))[0]


async def _turn_exists(tx: AsyncConnection, turn_id: str) -> bool:
    return (await tx.execute(select(turns.c.id).where(turns.c.id == turn_id))).first() is not None


async def _arrive(tx: AsyncConnection, arrivals: Sequence[Arrival], at: float) -> list[Stored]:
    """What belongs to a conversation that exists, or that an earlier one or the message itself founds."""
    named = {arrival.thread.conversation_id for arrival in arrivals}
    exist = select(conversations.c.id).where(conversations.c.id.in_(named))
    known = set((await tx.execute(exist)).scalars())
    founding: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for arrival in arrivals:
        if arrival.thread.conversation_id not in known:
            if not arrival.may_open:
                continue
            founding.append(_founded(arrival, at))
            known.add(arrival.thread.conversation_id)
        rows.append(_row(arrival, at))
    await insert_all_once(tx, conversations, founding, conversations.c.id)
    rows = await changes.as_changed_before(tx, rows)
    inserted = await insert_all_once(tx, inbox, rows, inbox.c.key, inbox.c.seq)
    new = {row.key: row.seq for row in inserted}
    # The first of several with one key is the one that was stored.
    return [Stored(arrival.thread.conversation_id, new.pop(arrival.key, None)) for arrival in arrivals]


def _founded(arrival: Arrival, at: float) -> dict[str, Any]:
    thread = arrival.thread
    return {
        "id": thread.conversation_id,
        "platform": thread.platform,
        "workspace": thread.workspace,
        "channel": thread.channel,
        "thread": thread.thread,
        "created_at": at,
        "history": "wanted" if arrival.inside_thread or _came_late(arrival, at) else "none",
    }


def _came_late(arrival: Arrival, at: float) -> bool:
    """Whether replies to it may have come before it, and were none of our business then."""
    return bool(arrival.sent_at) and at - arrival.sent_at > LATE_S


def _row(arrival: Arrival, at: float) -> dict[str, Any]:
    return {
        "conversation_id": arrival.thread.conversation_id,
        "key": arrival.key,
        "origin": arrival.key,
        "source": arrival.source,
        "author_id": arrival.author_id,
        "author_is_bot": arrival.author_is_bot,
        "marker": arrival.marker,
        "addressed": arrival.addressed,
        "text": arrival.text,
        "message_ref": None if arrival.stops_turn is not None else arrival.message_ref,
        "stops_turn": arrival.stops_turn,
        "inside_thread": arrival.inside_thread,
        "sent_at": arrival.sent_at or at,
        "received_at": at,
        "fate": Fate.WAITING,
    }


# --- what stood in the thread before ------------------------------------------------------------------------


async def add_history(
    tx: AsyncConnection, conversation_id: str, messages: Sequence[EarlierMessage], *, complete: bool
) -> None:
    """Store the thread's earlier messages as context, and that they were read (or could not be)."""
    at = await now(tx)
    for message in messages:
        await insert_once(
            tx,
            inbox,
            {
                "conversation_id": conversation_id,
                "key": message.key,
                "origin": message.key,
                "source": Source.ALERT if message.is_bot else Source.THREAD_REPLY,
                "author_id": message.author_id,
                "author_name": message.author_name,
                "author_is_bot": message.is_bot,
                "role": AuthorRole.BOT if message.is_bot else AuthorRole.MEMBER,
                "marker": "none",
                "addressed": "nobody",
                "text": message.text,
                "sent_at": message.sent_at,
                "received_at": at,
                "decided_at": at,
                "effect": Effect.CONTEXT,
                "rule": "thread_history",
                "fate": Fate.CONTEXT,
            },
        )
    await tx.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id)
        .values(history="read" if complete else "missing")
    )


# --- queries ------------------------------------------------------------------------------------------------


async def undecided(tx: AsyncConnection, limit: int = 200) -> list[Row[Any]]:
    """Messages that nothing was decided about yet, oldest first."""
    statement = (
        select(inbox, conversations.c.workspace, conversations.c.initiator)
        .join(conversations)
        .where(inbox.c.effect.is_(None), inbox.c.fate == Fate.WAITING)
        .order_by(inbox.c.seq)
        .limit(limit)
    )
    return list((await tx.execute(statement)).all())


def undecided_for(seconds: float) -> Any:
    """0 when a message has waited so long for its decision, else null; a scalar subquery."""
    waiting = (inbox.c.effect.is_(None), inbox.c.fate == Fate.WAITING)
    old = select(inbox.c.seq).where(*waiting, inbox.c.received_at < db_now() - seconds)
    return select(case((old.exists(), 0.0))).scalar_subquery()


IS_WAITING_WISH = (
    # Literals: an index of part of a table is used only where the statement itself names that part.
    inbox.c.fate == literal_column(f"'{Fate.WAITING}'"),
    inbox.c.effect.in_([effect.value for effect in WISHES]),
)
"""A message that a turn must read."""

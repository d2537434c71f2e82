"""What the reading commands print, in the contract's JSON forms.

Settle records, what happened in a conversation, and what runs or waits now.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, func, literal, null, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from core.history import Role
from core.resume import CallState
from core.usage import Usage, total
from storage.among import among
from storage.decisions import is_running
from storage.engine import Database, db_now
from storage.inbox import IS_WAITING_WISH
from storage.tables import (
    calls,
    cards,
    conversations,
    inbox,
    outbox,
    requests,
    settlements,
    transcript,
    turns,
)

Record = dict[str, Any]


def rfc3339(seconds: float | None) -> str | None:
    """A time as people and programs read it: "2026-11-30T14:05:11.250Z"."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def settle_records(
    database: Database, conversation_id: str | None = None, limit: int | None = None
) -> list[Record]:
    """Settle records, newest last: all or those of one conversation, and of them the newest so many."""
    return await database.read(_settle_records, conversation_id, limit)


async def _settle_records(
    tx: AsyncConnection, conversation_id: str | None, limit: int | None
) -> list[Record]:
    newest = None if limit is None else _newest(conversation_id, limit)
    statement = (
        select(settlements, turns, conversations, *_NEVER_TAKEN)
        .join(turns, turns.c.id == settlements.c.turn_id)
        .join(conversations, conversations.c.id == settlements.c.conversation_id)
        .where(*_wanted(settlements, conversation_id, newest))
        .order_by(settlements.c.settled_at, turns.c.number, turns.c.id)
    )
    rows = (await tx.execute(statement)).all()
    usages = await _usage_by_turn(tx, _wanted(requests, conversation_id, newest))
    call_counts = await _calls_by_turn(tx, _wanted(calls, conversation_id, newest))
    return [_record(row, usages.get(row.turn_id, Usage()), call_counts.get(row.turn_id, 0)) for row in rows]


def _newest(conversation_id: str | None, limit: int) -> Select[tuple[str]]:
    """The turns that ended last."""
    return (
        select(settlements.c.turn_id)
        .join(turns, turns.c.id == settlements.c.turn_id)
        .where(*_wanted(settlements, conversation_id, None))
        .order_by(settlements.c.settled_at.desc(), turns.c.number.desc(), turns.c.id.desc())
        .limit(limit)
    )


def _wanted(
    table: Table, conversation_id: str | None, newest: Select[tuple[str]] | None
) -> list[ColumnElement[bool]]:
    """Which rows of a table belong to what was asked for."""
    where: list[ColumnElement[bool]] = []
    if conversation_id is not None:
        where.append(table.c.conversation_id == conversation_id)
    if newest is not None:
        where.append(among(table.c.turn_id, newest))
    return where


_NEVER_TAKEN = (
    select(cards.c.given_up)
    .where(cards.c.id == turns.c.card_id, settlements.c.card_released_at.is_(None))
    .scalar_subquery()
    .label("card_given_up"),
    select(outbox.c.given_up)
    .where(outbox.c.once == literal("answer:").concat(settlements.c.turn_id))  # there is an index on it
    .scalar_subquery()
    .label("answer_given_up"),
)
"""What the platform said to a release and to an answer that were given up; null while there is hope."""


def _record(row: Row[Any], usage: Usage, tool_calls: int) -> Record:
    return {
        "turn_id": row.turn_id,
        "conversation_id": row.conversation_id,
        "platform": row.platform,
        "workspace": row.workspace,
        "channel": row.channel,
        "thread": row.thread,
        "reason": row.reason,
        "final_event_id": row.final_event_id,
        "cut_by": row.cut_by,
        "started_at": rfc3339(row.started_at),
        "settled_at": rfc3339(row.settled_at),
        "card_released_at": rfc3339(row.card_released_at),
        "answer_posted_at": rfc3339(row.answer_posted_at),
        "card_given_up": row.card_given_up,
        "answer_given_up": row.answer_given_up,
        "resumes_turn_id": row.resumes_turn,
        "steps": row.steps,
        "tool_calls": tool_calls,
        **_tokens(usage),
        "worker": row.worker,
    }


def _tokens(usage: Usage) -> Record:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": usage.cost_usd,
    }


def usage_of(row: Row[Any]) -> Usage:
    """The usage in a row of `requests`."""
    return Usage(
        row.input_tokens,
        row.output_tokens,
        row.cache_read_tokens,
        row.cache_write_tokens,
        row.cost_usd,
        row.exact,
    )


async def _usage_by_turn(tx: AsyncConnection, where: list[ColumnElement[bool]]) -> dict[str, Usage]:
    by_turn: dict[str, list[Usage]] = {}
    for row in (await tx.execute(select(requests).where(*where))).all():
        by_turn.setdefault(row.turn_id, []).append(usage_of(row))
    return {turn_id: total(usages) for turn_id, usages in by_turn.items()}


async def _calls_by_turn(tx: AsyncConnection, where: list[ColumnElement[bool]]) -> dict[str, int]:
    counted = select(calls.c.turn_id, func.count()).where(*where).group_by(calls.c.turn_id)
    return {row.turn_id: int(row[1]) for row in (await tx.execute(counted)).all()}


async def conversation(database: Database, conversation_id: str) -> Record | None:
    """What happened in one conversation; None when there is no such one."""
    return await database.read(_conversation, conversation_id)


async def _conversation(tx: AsyncConnection, conversation_id: str) -> Record | None:
    known = select(conversations.c.id).where(conversations.c.id == conversation_id)
    if (await tx.execute(known)).first() is None:
        return None
    usages = await _usage_by_turn(tx, _wanted(requests, conversation_id, None))
    return {
        "conversation_id": conversation_id,
        "messages": await _messages(tx, conversation_id),
        "turns": await _turns(tx, conversation_id),
        "posts": await _posts(tx, conversation_id),
        "cost_usd": total(usages.values()).cost_usd,
    }


async def _messages(tx: AsyncConnection, conversation_id: str) -> list[Record]:
    statement = select(inbox).where(inbox.c.conversation_id == conversation_id).order_by(inbox.c.seq)
    return [
        {
            "id": row.key,
            "source": row.source,
            "role": row.role,
            "marker": row.marker,
            "effect": row.effect,
            "rule": row.rule,
            "fate": row.fate,
            "turn_id": row.turn_id,
            "text": row.text,
        }
        for row in (await tx.execute(statement)).all()
    ]


async def _turns(tx: AsyncConnection, conversation_id: str) -> list[Record]:
    statement = (
        select(turns, settlements.c.reason, db_now().label("now"))
        .outerjoin(settlements, settlements.c.turn_id == turns.c.id)
        .where(turns.c.conversation_id == conversation_id)
        .order_by(turns.c.number)
    )
    turn_rows = (await tx.execute(statement)).all()
    call_rows = (
        await tx.execute(
            select(calls).where(calls.c.conversation_id == conversation_id).order_by(calls.c.number)
        )
    ).all()
    said = select(transcript.c.turn_id, transcript.c.position, transcript.c.at).where(
        transcript.c.conversation_id == conversation_id, transcript.c.role == Role.ASSISTANT
    )
    step_rows = (await tx.execute(said.order_by(transcript.c.position))).all()
    return [
        {
            "turn_id": turn.id,
            "reason": turn.reason,
            "started_at": rfc3339(turn.started_at),
            "worker": turn.worker,
            "steps": [
                {
                    "calls": [
                        _call(row, step.at, turn.now) for row in call_rows if row.position == step.position
                    ]
                }
                for step in step_rows
                if step.turn_id == turn.id
            ],
        }
        for turn in turn_rows
    ]


def _call(row: Row[Any], committed_at: float, now: float) -> Record:
    """A call; one without a result has an age, since it was last started or else since its step."""
    since = committed_at if row.started_at is None else row.started_at
    return {
        "id": row.id,
        "tool": row.tool,
        "class": row.tool_class,
        "state": row.outcome or row.state,
        "attempts": row.attempts,
        "age_s": None if row.state == CallState.DONE else round(max(0.0, now - since), 3),
    }


async def _posts(tx: AsyncConnection, conversation_id: str) -> list[Record]:
    """What we said or wanted to say besides the card; not the charts' pictures, which are large."""
    o = outbox.c
    statement = (
        select(o.kind, o.turn_id, o.text, o.queued_at, o.done_at, o.given_up)
        .where(o.conversation_id == conversation_id)
        .order_by(o.number)
    )
    return [
        {
            "kind": row.kind,
            "turn_id": row.turn_id,
            "text": row.text,
            "queued_at": rfc3339(row.queued_at),
            "posted_at": None if row.given_up is not None else rfc3339(row.done_at),
            "given_up": row.given_up,
        }
        for row in (await tx.execute(statement)).all()
    ]


_FIRST_WISHES = select(func.min(inbox.c.seq)).where(*IS_WAITING_WISH).group_by(inbox.c.conversation_id)

_RUNNING = (
    select(
        conversations.c.id.label("conversation_id"),
        literal("running").label("state"),
        turns.c.started_at.label("since"),
        turns.c.worker.label("worker"),
        turns.c.goal.label("goal"),
    )
    .join(turns, turns.c.id == conversations.c.active_turn)
    .where(conversations.c.active_turn.is_not(None))
)
_INTERRUPTED = (
    select(
        conversations.c.id, literal("waits to be resumed"), conversations.c.resume_since, null(), turns.c.goal
    )
    .join(turns, turns.c.id == conversations.c.resume_turn)
    .where(conversations.c.resume_turn.is_not(None), conversations.c.active_turn.is_(None))
)
_ASKED_FOR = (
    select(inbox.c.conversation_id, literal("waits for a worker"), inbox.c.received_at, null(), inbox.c.text)
    .join(conversations, conversations.c.id == inbox.c.conversation_id)
    .where(
        among(inbox.c.seq, _FIRST_WISHES),
        conversations.c.active_turn.is_(None),
        conversations.c.resume_turn.is_(None),
    )
)
UNDERWAY = union_all(_RUNNING, _INTERRUPTED, _ASKED_FOR).order_by("since", "conversation_id")
"""One statement, which reads what is open and no more, from the partial indexes over it."""


async def underway(database: Database) -> list[Record]:
    """Each conversation that runs or waits now, once; the newest last."""
    return await database.read(_underway)


async def _underway(tx: AsyncConnection) -> list[Record]:
    return [
        {
            "conversation_id": row.conversation_id,
            "state": row.state,
            "since": rfc3339(row.since),
            "worker": row.worker,
            "goal": row.goal,
        }
        for row in (await tx.execute(UNDERWAY)).all()
    ]


async def standing(database: Database, conversation_id: str) -> tuple[bool, str | None]:
    """Whether a turn runs or is due in a conversation, and who began it; (False, None) for an unknown one."""
    return await database.read(_standing, conversation_id)


async def _standing(tx: AsyncConnection, conversation_id: str) -> tuple[bool, str | None]:
    known = select(conversations).where(conversations.c.id == conversation_id)
    row = (await tx.execute(known)).first()
    return (False, None) if row is None else (await is_running(tx, row), row.initiator)

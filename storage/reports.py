"""What the reading commands print, in the contract's JSON forms.

Settle records, and what happened in a conversation.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from core.history import Role
from core.usage import Usage, total
from storage.decisions import is_running
from storage.engine import Database
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


async def settle_records(database: Database, conversation_id: str | None = None) -> list[Record]:
    """All settle records, newest last, or those of one conversation."""
    return await database.read(_settle_records, conversation_id)


async def _settle_records(tx: AsyncConnection, conversation_id: str | None) -> list[Record]:
    statement = (
        select(settlements, turns, conversations, *_NEVER_TAKEN)
        .join(turns, turns.c.id == settlements.c.turn_id)
        .join(conversations, conversations.c.id == settlements.c.conversation_id)
        .order_by(settlements.c.settled_at, turns.c.number)
    )
    if conversation_id is not None:
        statement = statement.where(settlements.c.conversation_id == conversation_id)
    rows = (await tx.execute(statement)).all()
    usages = await _usage_by_turn(tx, conversation_id)
    call_counts = await _calls_by_turn(tx, conversation_id)
    return [_record(row, usages.get(row.turn_id, Usage()), call_counts.get(row.turn_id, 0)) for row in rows]


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


async def _usage_by_turn(tx: AsyncConnection, conversation_id: str | None) -> dict[str, Usage]:
    statement = select(requests)
    if conversation_id is not None:
        statement = statement.where(requests.c.conversation_id == conversation_id)
    by_turn: dict[str, list[Usage]] = {}
    for row in (await tx.execute(statement)).all():
        by_turn.setdefault(row.turn_id, []).append(usage_of(row))
    return {turn_id: total(usages) for turn_id, usages in by_turn.items()}


async def _calls_by_turn(tx: AsyncConnection, conversation_id: str | None) -> dict[str, int]:
    statement = select(calls.c.turn_id, func.count().label("count")).group_by(calls.c.turn_id)
    if conversation_id is not None:
        statement = statement.where(calls.c.conversation_id == conversation_id)
    return {row.turn_id: int(row[1]) for row in (await tx.execute(statement)).all()}


async def conversation(database: Database, conversation_id: str) -> Record | None:
    """What happened in one conversation; None when there is no such one."""
    return await database.read(_conversation, conversation_id)


async def _conversation(tx: AsyncConnection, conversation_id: str) -> Record | None:
    known = select(conversations.c.id).where(conversations.c.id == conversation_id)
    if (await tx.execute(known)).first() is None:
        return None
    usages = await _usage_by_turn(tx, conversation_id)
    return {
        "conversation_id": conversation_id,
        "messages": await _messages(tx, conversation_id),
        "turns": await _turns(tx, conversation_id),
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
        select(turns.c.id, turns.c.number, settlements.c.reason)
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
    said = select(transcript.c.turn_id, transcript.c.position).where(
        transcript.c.conversation_id == conversation_id, transcript.c.role == Role.ASSISTANT
    )
    step_rows = (await tx.execute(said.order_by(transcript.c.position))).all()
    return [
        {
            "turn_id": turn.id,
            "reason": turn.reason,
            "steps": [
                {"calls": [_call(row) for row in call_rows if row.position == step.position]}
                for step in step_rows
                if step.turn_id == turn.id
            ],
        }
        for turn in turn_rows
    ]


def _call(row: Row[Any]) -> Record:
    return {
        "id": row.id,
        "tool": row.tool,
        "class": row.tool_class,
        "state": row.outcome or row.state,
        "attempts": row.attempts,
    }


async def standing(database: Database, conversation_id: str) -> tuple[bool, str | None]:
    """Whether a turn runs or is due in a conversation, and who began it; (False, None) for an unknown one."""
    return await database.read(_standing, conversation_id)


async def _standing(tx: AsyncConnection, conversation_id: str) -> tuple[bool, str | None]:
    known = select(conversations).where(conversations.c.id == conversation_id)
    row = (await tx.execute(known)).first()
    return (False, None) if row is None else (await is_running(tx, row), row.initiator)

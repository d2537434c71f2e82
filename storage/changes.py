"""Edits and deletions of messages, also of those that have not come yet.

Slack keeps no order: a message whose first delivery failed comes after its own edit.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Addressed, AuthorRole, Deletion, Edit, Marker, Source
from core.inbox import Fate
from core.policy import Effect
from storage.statements import insert_once
from storage.tables import conversations, inbox

NOBODY = "nobody"
"""The author of a change whose message has not come yet."""

NO_WORDS = (Marker.NONE, Addressed.NOBODY)


async def _insert(tx: AsyncConnection, values: dict[str, Any]) -> int | None:
    if not await insert_once(tx, inbox, values):
        return None
    return int((await tx.execute(select(inbox.c.seq).where(inbox.c.key == values["key"]))).scalar_one())


async def _newest_version(tx: AsyncConnection, key: str) -> Row[Any] | None:
    newest = select(inbox).where(inbox.c.origin == key).order_by(inbox.c.seq.desc()).limit(1)
    return (await tx.execute(newest)).first()


def _notes_of(row: Row[Any]) -> str:
    """The origin of what the model is told of later changes: no version of the message itself."""
    return f"{row.origin}:changes"


async def _was_told(tx: AsyncConnection, row: Row[Any]) -> bool:
    """Whether the model was told of a change to this message after it had read it."""
    told = select(inbox.c.seq).where(inbox.c.origin == _notes_of(row)).limit(1)
    return (await tx.execute(told)).first() is not None


def _unread(row: Row[Any]) -> bool:
    waits = row.fate == Fate.WAITING
    return waits or (row.fate == Fate.CONTEXT and row.turn_id is None)


async def edit(tx: AsyncConnection, change: Edit, at: float) -> int | None:
    """An unread message is replaced; of a read one the model is told; any other stays as it is."""
    row = await _newest_version(tx, change.key)
    if row is None or row.author_id == NOBODY:
        return await _early(tx, change, change.edit_key, at, text=change.text, fate=Fate.REPLACED)
    if row.text == change.text and not await _was_told(tx, row):
        return None
    if _unread(row):
        new = {
            **_copied(row, change.edit_key, at),
            "text": change.text,
            "marker": change.marker,
            "addressed": change.addressed,
        }
        seq = await _insert(tx, new)
        if seq is not None:
            await _set_fate(tx, row.seq, Fate.REPLACED)
        return seq
    if row.fate in (Fate.READ, Fate.CONTEXT):
        words = f"{row.author_name or row.author_id} changed an earlier message to:\n{change.text}"
        return await _insert(tx, _note(row, change.edit_key, words, at))
    return None


async def delete(tx: AsyncConnection, deletion: Deletion, at: float) -> int | None:
    """An unread message is withdrawn; of a read one the model is told; any other stays as it is."""
    row = await _newest_version(tx, deletion.key)
    if row is None or row.author_id == NOBODY:
        return await _early(tx, deletion, f"{deletion.key}:deleted", at, text="", fate=Fate.WITHDRAWN)
    if _unread(row):
        await _set_fate(tx, row.seq, Fate.WITHDRAWN)
        return int(row.seq)
    if row.fate in (Fate.READ, Fate.CONTEXT):
        words = f"{row.author_name or row.author_id} deleted an earlier message:\n{row.text}"
        return await _insert(tx, _note(row, f"{deletion.key}:deleted", words, at))
    return None


async def _early(
    tx: AsyncConnection, change: Edit | Deletion, key: str, at: float, *, text: str, fate: Fate
) -> int | None:
    """A change that came before its message: kept until that comes, in a thread of ours."""
    conversation_id = change.thread.conversation_id
    known = select(conversations.c.id).where(conversations.c.id == conversation_id)
    if (await tx.execute(known)).first() is None:
        return None
    marker, addressed = (change.marker, change.addressed) if isinstance(change, Edit) else NO_WORDS
    row = {
        "conversation_id": conversation_id,
        "key": key,
        "origin": change.key,
        "source": Source.THREAD_REPLY,
        "author_id": NOBODY,
        "marker": marker,
        "addressed": addressed,
        "text": text,
        "sent_at": at,
        "received_at": at,
        "fate": fate,
    }
    return await _insert(tx, row)


async def as_changed_before(tx: AsyncConnection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as they are by now, where a change to them was faster than they."""
    keys = [row["key"] for row in rows]
    early = select(inbox).where(inbox.c.origin.in_(keys), inbox.c.author_id == NOBODY).order_by(inbox.c.seq)
    changed: dict[str, dict[str, Any]] = {}
    for row in (await tx.execute(early)).all():
        if row.fate == Fate.WITHDRAWN:
            changed.setdefault(row.origin, {})["fate"] = Fate.WITHDRAWN
        else:
            words = {"text": row.text, "marker": row.marker, "addressed": row.addressed}
            changed.setdefault(row.origin, {}).update(words)
    return [row | changed.get(row["key"], {}) for row in rows]


async def _set_fate(tx: AsyncConnection, seq: int, fate: Fate) -> None:
    await tx.execute(update(inbox).where(inbox.c.seq == seq).values(fate=fate, receipt=None))


def _copied(row: Row[Any], key: str, at: float) -> dict[str, Any]:
    values = {
        column.name: getattr(row, column.name)
        for column in inbox.columns
        if column.name not in ("seq", "receipt_shown", "receipt_tries", "receipt_not_before")
    }
    return {**values, "key": key, "received_at": at, "receipt_shown": row.receipt_shown}


def _note(row: Row[Any], key: str, words: str, at: float) -> dict[str, Any]:
    return {
        "conversation_id": row.conversation_id,
        "key": key,
        "origin": _notes_of(row),
        "source": Source.NOTICE,
        "author_id": row.author_id,
        "author_name": row.author_name,
        "role": AuthorRole.SYSTEM,
        "marker": row.marker,
        "addressed": row.addressed,
        "text": words,
        "sent_at": at,
        "received_at": at,
        "decided_at": at,
        "effect": Effect.CONTEXT,
        "rule": "edited_after_reading",
        "fate": Fate.CONTEXT,
    }

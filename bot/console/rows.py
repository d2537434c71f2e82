"""The tables of the channel's file, and their rows as values."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from core.history import Json

SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    ref TEXT PRIMARY KEY, thread TEXT NOT NULL, sent_at REAL NOT NULL,
    kind TEXT NOT NULL, author TEXT NOT NULL, text TEXT NOT NULL,
    event_type TEXT NOT NULL DEFAULT '', payload TEXT NOT NULL DEFAULT '{}', card TEXT, file INTEGER,
    edited INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL, changed INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_thread ON messages (thread, sent_at);
CREATE INDEX IF NOT EXISTS messages_changed ON messages (changed);
CREATE TABLE IF NOT EXISTS reactions (
    ref TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (ref, name)
);
CREATE TABLE IF NOT EXISTS private_notes (
    id INTEGER PRIMARY KEY, thread TEXT NOT NULL, to_user TEXT NOT NULL, text TEXT NOT NULL,
    sent_at REAL NOT NULL, changed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""

RECEIPTS = "(SELECT group_concat(name, ' ') FROM reactions r WHERE r.ref = messages.ref)"
COLUMNS = f"messages.*, {RECEIPTS} AS receipts"


class Kind(StrEnum):
    """Who speaks in a message: a person, another program (an alert), or we."""

    PERSON = "person"
    APP = "app"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `created` and `changed` count the changes of the whole channel, so that a page that
    fell behind can be brought up to date."""

    ref: str
    thread: str
    sent_at: float
    kind: Kind
    author: str
    text: str
    event_type: str
    payload: dict[str, Json]
    card: str | None
    file: int | None
    edited: bool
    deleted: bool
    created: int
    changed: int
    receipts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrivateNote:
    """Words for one person only."""

    id: int
    thread: str
    to_user: str
    text: str
    sent_at: float
    changed: int


def messages(db: sqlite3.Connection, where: str, *values: object) -> list[Message]:
    """The messages for which it holds, oldest first. `where` is one of our own constants."""
    statement = f"SELECT {COLUMNS} FROM messages WHERE {where} ORDER BY sent_at"  # noqa: S608
    return [_message(row) for row in db.execute(statement, values)]


def notes(db: sqlite3.Connection, where: str, *values: object) -> list[PrivateNote]:
    """The private notes for which it holds, oldest first. `where` is one of our own constants."""
    statement = f"SELECT * FROM private_notes WHERE {where} ORDER BY id"  # noqa: S608
    return [PrivateNote(**dict(row)) for row in db.execute(statement, values)]


def newest_change(db: sqlite3.Connection) -> int:
    """The number of the newest change, 0 in an empty channel."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def count_change(db: sqlite3.Connection, change: int) -> None:
    """Keep the number of the newest change; part of its transaction."""
    db.execute(f"PRAGMA user_version = {change:d}")


def _message(row: sqlite3.Row) -> Message:
    values = dict(row)
    return Message(
        **{
            **values,
            "kind": Kind(values["kind"]),
            "payload": json.loads(values["payload"]),
            "edited": bool(values["edited"]),
            "deleted": bool(values["deleted"]),
            "receipts": tuple((values["receipts"] or "").split()),
        }
    )

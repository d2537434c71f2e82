"""The channel: messages, reactions, private notes and files in one small SQLite file.

It is the platform's memory, not ours: what a card or a receipt says here is only what was shown.

Rule 1: every change is one transaction and gets the next number, so that a page can ask what it missed.
Rule 2: what a person did is stored together with its delivery, which is struck off only once it was accepted.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from bot.console import rows
from bot.console.rows import Kind, Message, PrivateNote
from core.history import Json

T = TypeVar("T")
SMALLEST_STEP_S = 1e-6


class Channel:
    """One open channel. All statements run in one thread of its own, one transaction after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="console")
        self._db: sqlite3.Connection | None = None
        self._change = 0
        self._newest_ref = 0.0
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, path: Path) -> Channel:
        """Open the file, and make it where there is none."""
        channel = cls(path)
        await asyncio.get_running_loop().run_in_executor(channel._thread, channel._open)
        return channel

    def _open(self) -> None:
        db = sqlite3.connect(self._path, isolation_level=None)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(rows.SCHEMA)
        self._db = db
        self._change = rows.newest_change(db)
        newest = db.execute("SELECT max(sent_at) FROM messages").fetchone()[0]
        self._newest_ref = float(newest or 0.0)

    async def close(self) -> None:
        """Close the file."""
        db, self._db = self._db, None
        if db is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, db.close)
        self._thread.shutdown()

    # --- changes ------------------------------------------------------------------------------------------

    @property
    def change(self) -> int:
        """The number of the newest change."""
        return self._change

    async def wait_beyond(self, change: int, at_most_s: float) -> None:
        """Wait until something newer than that change may be there, at most so long."""
        try:
            async with asyncio.timeout(at_most_s):
                if self._change <= change:
                    await self._changed.wait()
        except TimeoutError:
            return

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        assert self._db is not None, "the channel is closed"
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._db)

    async def _write(self, work: Callable[[sqlite3.Connection, int], T]) -> T:
        """Run `work` in one transaction, with the number of its change. A cancel does not cut it short."""

        def transaction(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                done = work(db, self._change + 1)
                rows.count_change(db, self._change + 1)
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
            self._change += 1
            return done

        done = await self._read(transaction)
        self.wake()
        return done

    # --- writing ------------------------------------------------------------------------------------------

    async def write(
        self,
        kind: Kind,
        author: str,
        text: str,
        *,
        thread: str | None = None,
        event_type: str = "",
        payload: dict[str, Json] | None = None,
        card: str | None = None,
        picture: bytes | None = None,
        delivery: Callable[[str, float], str] | None = None,
    ) -> Message:
        """Add a message; without `thread` it begins one. `delivery` makes, from its reference and time, what
        has to be handed in about it."""

        def work(db: sqlite3.Connection, change: int) -> Message:
            at = self._newest_ref = max(time.time(), self._newest_ref + SMALLEST_STEP_S)
            ref = f"{at:.6f}"
            if thread is not None:
                _must_exist(db, thread)
            file = None
            if picture is not None:
                file = db.execute("INSERT INTO files (content) VALUES (?)", [picture]).lastrowid
            db.execute(
                "INSERT INTO messages (ref, thread, sent_at, kind, author, text, event_type, payload, card,"
                " file, created, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [ref, thread or ref, float(ref), kind, author, text, event_type, json.dumps(payload or {}),
                 card, file, change, change],
            )  # fmt: skip
            if delivery is not None:
                db.execute("INSERT INTO deliveries (body) VALUES (?)", [delivery(ref, float(ref))])
            return rows.messages(db, "ref = ?", ref)[0]

        return await self._write(work)

    async def revise(self, ref: str, *, card: str, payload: dict[str, Json], event_type: str) -> bool:
        """Show another card in a message of ours; False when it is not there."""

        def work(db: sqlite3.Connection, change: int) -> bool:
            done = db.execute(
                "UPDATE messages SET card = ?, payload = ?, event_type = ?, changed = ?"
                " WHERE ref = ? AND kind = 'ours' AND NOT deleted",
                [card, json.dumps(payload), event_type, change, ref],
            )
            return done.rowcount > 0

        return await self._write(work)

    async def edit(self, ref: str, text: str, delivery: str) -> None:
        """Change a person's words."""

        def work(db: sqlite3.Connection, change: int) -> None:
            db.execute(
                "UPDATE messages SET text = ?, edited = 1, changed = ? WHERE ref = ?",
                [text, change, ref],
            )
            db.execute("INSERT INTO deliveries (body) VALUES (?)", [delivery])

        await self._write(work)

    async def delete(self, ref: str, delivery: str | None = None) -> None:
        """Delete a message. Harmless when it is gone."""

        def work(db: sqlite3.Connection, change: int) -> None:
            db.execute("UPDATE messages SET deleted = 1, changed = ? WHERE ref = ?", [change, ref])
            if delivery is not None:
                db.execute("INSERT INTO deliveries (body) VALUES (?)", [delivery])

        await self._write(work)

    async def react(self, ref: str, name: str | None, previous: str | None) -> bool:
        """Put one reaction of ours in the place of another; False when the message is not there."""

        def work(db: sqlite3.Connection, change: int) -> bool:
            if not rows.messages(db, "ref = ? AND NOT deleted", ref):
                return False
            if previous is not None and previous != name:
                db.execute("DELETE FROM reactions WHERE ref = ? AND name = ?", [ref, previous])
            if name is not None:
                db.execute("INSERT OR IGNORE INTO reactions VALUES (?, ?)", [ref, name])
            db.execute("UPDATE messages SET changed = ? WHERE ref = ?", [change, ref])
            return True

        return await self._write(work)

    async def whisper(self, thread: str, to_user: str, text: str) -> None:
        """Keep words for one person only."""

        def work(db: sqlite3.Connection, change: int) -> None:
            _must_exist(db, thread)
            db.execute(
                "INSERT INTO private_notes (thread, to_user, text, sent_at, changed) VALUES (?, ?, ?, ?, ?)",
                [thread, to_user, text, time.time(), change],
            )

        await self._write(work)

    async def press(self, delivery: str) -> None:
        """Keep what a button said until it was handed in."""

        def work(db: sqlite3.Connection, _: int) -> None:
            db.execute("INSERT INTO deliveries (body) VALUES (?)", [delivery])

        await self._write(work)

    async def delivered(self, number: int) -> None:
        """Strike off a delivery."""

        def work(db: sqlite3.Connection, _: int) -> None:
            db.execute("DELETE FROM deliveries WHERE id = ?", [number])

        await self._write(work)

    # --- reading ------------------------------------------------------------------------------------------

    async def messages(self, where: str, *values: object) -> list[Message]:
        """The messages for which it holds, oldest first. `where` is a constant of the code."""
        return await self._read(lambda db: rows.messages(db, where, *values))

    async def message(self, ref: str) -> Message | None:
        """One message that is not deleted."""
        found = await self.messages("ref = ? AND NOT deleted", ref)
        return found[0] if found else None

    async def notes(self, thread: str, to_user: str, beyond: int = 0) -> list[PrivateNote]:
        """What one person was told in a thread since that change."""
        where = "thread = ? AND to_user = ? AND changed > ?"
        return await self._read(lambda db: rows.notes(db, where, thread, to_user, beyond))

    async def file(self, number: int) -> bytes | None:
        """A picture."""

        def work(db: sqlite3.Connection) -> bytes | None:
            found = db.execute("SELECT content FROM files WHERE id = ?", [number]).fetchone()
            return bytes(found[0]) if found else None

        return await self._read(work)

    async def deliveries(self) -> list[tuple[int, str]]:
        """What still has to be handed in, oldest first."""

        def work(db: sqlite3.Connection) -> list[tuple[int, str]]:
            found = db.execute("SELECT id, body FROM deliveries ORDER BY id").fetchall()
            return [(int(row[0]), str(row[1])) for row in found]

        return await self._read(work)


class NoSuchThread(Exception):
    """The thread does not exist."""


def _must_exist(db: sqlite3.Connection, thread: str) -> None:
    if db.execute("SELECT 1 FROM messages WHERE ref = ?", [thread]).fetchone() is None:
        raise NoSuchThread(thread)

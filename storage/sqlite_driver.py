"""How the SQLite driver is driven: statements run where they are asked for.

Only what may wait for a lock or for the disk (the begin of a write, the commit) goes to the connection's
thread.

The driver's own cursor goes there and back four times a statement: to be made, to execute, to fetch, to be
closed. Each way waits for the scheduler and for whatever else the event loop does, far longer than the tens
of microseconds that an indexed statement takes; it was most of a transaction's time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import aiosqlite

CONNECT_ARGS = {"check_same_thread": False}
"""For engines whose connections are driven so. One at a time uses a connection: who awaits, waits."""

WAITS = frozenset({"BEGIN IMMEDIATE"})
"""Statements that wait for other processes."""


def drive(driver: aiosqlite.Connection) -> None:
    """Drive this connection so from now on."""

    async def rollback() -> None:
        driver._conn.rollback()

    driver.cursor = partial(WholeCursor, driver)  # type: ignore[method-assign, assignment]
    driver.rollback = rollback  # type: ignore[method-assign]


class WholeCursor:
    """What SQLAlchemy asks of a driver's cursor and no more; it holds the whole result of its statement."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> WholeCursor:
        return self

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> WholeCursor:
        """Execute one statement and fetch all that it gives."""
        if statement in WAITS:
            in_thread: Any = self._connection._execute  # ships without types
            await in_thread(self._run, sqlite3.Cursor.execute, statement, parameters)
        else:
            self._run(sqlite3.Cursor.execute, statement, parameters)
        return self

    async def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> WholeCursor:
        """Execute one statement for each of these."""
        self._run(sqlite3.Cursor.executemany, statement, parameters)
        return self

    def _run(self, execute: Callable[..., sqlite3.Cursor], statement: str, parameters: Any) -> None:
        cursor = self._connection._conn.cursor()
        try:
            execute(cursor, statement, parameters)
            self.description, self.lastrowid = cursor.description, cursor.lastrowid
            self._rows = cursor.fetchall()
            self.rowcount = cursor.rowcount
        finally:
            cursor.close()

    async def fetchall(self) -> list[Any]:
        """The rows."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """There is nothing left open."""

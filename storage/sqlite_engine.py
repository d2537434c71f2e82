"""SQLite: one connection that writes, a few that read; WAL, so that neither waits for the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from storage import sqlite_driver
from storage.errors import DatabaseUnusable

BUSY_TIMEOUT_S = 5.0


def engines(url: URL, *, read_only: bool) -> tuple[AsyncEngine, AsyncEngine]:
    """The engine that writes and the one that reads."""
    if read_only and url.database and not Path(url.database).exists():
        raise DatabaseUnusable(
            f"there is no database at {url.database}: set DATABASE_URL to the one that is used"
        )
    writer = create_async_engine(
        url, pool_size=1, max_overflow=0, pool_timeout=60, connect_args=sqlite_driver.CONNECT_ARGS
    )
    reader = create_async_engine(url, pool_size=4, max_overflow=4, connect_args=sqlite_driver.CONNECT_ARGS)
    for engine in (writer, reader):
        event.listen(engine.sync_engine, "connect", _drive)
    prepare(writer, writes=True)
    prepare(reader, writes=False)
    return writer, reader


def is_busy(error: BaseException | None) -> bool:
    """Whether another connection is in the way; the lower byte tells, whatever the extended code says."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _drive(dbapi_connection: Any, _record: Any) -> None:
    sqlite_driver.drive(dbapi_connection.driver_connection)


def prepare(engine: AsyncEngine, *, writes: bool) -> None:
    """Make an engine's transactions real ones, tables included: the driver's own habits leave some out."""
    event.listen(engine.sync_engine, "connect", _prepare(writes=writes))
    event.listen(engine.sync_engine, "begin", _begin_immediate if writes else _begin_deferred)


def _prepare(*, writes: bool) -> Callable[[Any, Any], None]:
    """Per connection: durable on power loss (`synchronous=FULL`), patient with other processes."""

    def prepare(dbapi_connection: Any, _record: Any) -> None:
        dbapi_connection.isolation_level = None  # we say BEGIN ourselves
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        cursor.execute("PRAGMA foreign_keys = ON")
        if writes:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = FULL")
        else:
            cursor.execute("PRAGMA query_only = ON")
        cursor.close()

    return prepare


def _begin_immediate(connection: Any) -> None:
    # A deferred transaction that writes after another's commit fails at once, whatever the busy timeout.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_deferred(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN")

"""The database engine: SQLite or Postgres, one way to read and one way to write.

Every write runs in a task that the database owns: a caller that is cancelled stops waiting, and the
transaction still comes to its end. Cancelling around a COMMIT leaves its outcome unknown and destroys the
connection. SQLite lets one write at a time; `write_first` goes before all others that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Double

from storage import sqlite_driver
from storage.errors import DatabaseUnusable
from storage.turnstile import Turnstile

P = ParamSpec("P")
T = TypeVar("T")
Transaction = Callable[Concatenate[AsyncConnection, P], Awaitable[T]]

BUSY_TIMEOUT_S = 5.0
TRIES = 3


class db_now(FunctionElement[float]):  # reads like the SQL function that it is
    """The database's own clock in seconds since the epoch, when the statement runs and not when it began."""

    type: Double[float] = Double()
    inherit_cache = True


@compiles(db_now, "sqlite")
def _sqlite_now(element: db_now, compiler: SQLCompiler, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(db_now, "postgresql")
def _postgres_now(element: db_now, compiler: SQLCompiler, **_: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


class Database:
    """Readers and one way to write. Open with `Database.open`, close when done."""

    def __init__(self, writer: AsyncEngine, reader: AsyncEngine) -> None:
        self._writer = writer
        self._reader = reader
        self._owned: set[asyncio.Task[Any]] = set()
        self._turnstile = Turnstile() if self.is_sqlite else None

    @classmethod
    async def open(cls, url: str, *, read_only: bool = False) -> Database:
        """Open the database at a SQLAlchemy URL (async driver); raises DatabaseUnusable with the mend."""
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            database = _sqlite(parsed, read_only=read_only)
        else:
            engine = create_async_engine(parsed, pool_size=10, max_overflow=10, pool_pre_ping=True)
            database = cls(engine, engine)
        try:
            async with database._reader.connect() as connection:
                # Reads the file: a bare `select 1` is answered without looking whether it is a database.
                await connection.run_sync(lambda sync: sync.dialect.has_table(sync, "alembic_version"))
        except (OSError, DBAPIError) as error:
            await database.close()
            raise DatabaseUnusable(why_unusable(parsed, error)) from error
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded database, which serves one process."""
        return self._writer.dialect.name == "sqlite"

    async def read(self, query: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, in one snapshot."""
        return await self._owning(self._read(lambda connection: query(connection, *args, **kwargs)))

    async def write(self, transaction: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction to its end; what it raises undoes it whole."""
        return await self._owning(self._run(lambda connection: transaction(connection, *args, **kwargs)))

    async def write_first(self, transaction: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, for what somebody outside waits for."""
        return await self._owning(
            self._run(lambda connection: transaction(connection, *args, **kwargs), first=True)
        )

    async def _owning(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that is never cancelled itself: that would destroy its connection."""
        task = asyncio.create_task(work)
        self._owned.add(task)
        task.add_done_callback(self._let_go)
        return await asyncio.shield(task)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._owned.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; if nobody waits any more, nobody misses it

    async def _read(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._reader.connect() as connection:
            return await query(connection)

    def _turn(self, *, first: bool) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._turnstile is None else self._turnstile.passing(first=first)

    async def _run(self, transaction: Callable[[AsyncConnection], Awaitable[T]], *, first: bool = False) -> T:
        for attempt in range(1, TRIES + 1):
            try:
                async with self._turn(first=first), self._writer.begin() as connection:
                    return await transaction(connection)
            except OperationalError as error:  # busy, deadlock, serialization: the whole transaction again
                if attempt == TRIES or error.connection_invalidated:
                    raise
                await asyncio.sleep(0.05 * attempt)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Wait for every transaction under way, then close all connections."""
        while self._owned:
            await asyncio.wait(self._owned)
        await self._reader.dispose()
        if self._writer is not self._reader:
            await self._writer.dispose()


def _sqlite(url: URL, *, read_only: bool) -> Database:
    """One connection that writes, a few that read; WAL, so that neither waits for the other."""
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
    prepare_sqlite(writer, writes=True)
    prepare_sqlite(reader, writes=False)
    return Database(writer, reader)


def _drive(dbapi_connection: Any, _record: Any) -> None:
    sqlite_driver.drive(dbapi_connection.driver_connection)


def prepare_sqlite(engine: AsyncEngine, *, writes: bool) -> None:
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


def why_unusable(url: URL, error: Exception) -> str:
    """One line for people: what cannot be opened, why, and what to check."""
    cause = str(getattr(error, "orig", None) or error).splitlines()[0]
    where = url.database if url.get_backend_name() == "sqlite" else f"{url.host}:{url.port or 5432}"
    mend = "check that it exists and may be written"
    return f"DATABASE_URL: cannot open the database at {where} ({cause}): {mend}"

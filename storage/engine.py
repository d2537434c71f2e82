"""The database engine: SQLite or Postgres, one way to read and one way to write.

Every write runs in a task that the database owns: a caller that is cancelled stops waiting, and the
transaction still comes to its end. Cancelling around a COMMIT leaves its outcome unknown and destroys the
connection. SQLite lets one write at a time, in groups with one COMMIT (`storage.group_commit`); `write_first`
goes before all others that wait.

What fails before its COMMIT was sent has done nothing, and is tried again while the database is away. What
fails at its COMMIT may have been done: `CommitUnknown`, and whoever asked reads the records again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Double

from storage import postgres_engine, sqlite_engine
from storage.errors import CommitUnknown, DatabaseAway, DatabaseUnusable
from storage.group_commit import GroupCommit

P = ParamSpec("P")
T = TypeVar("T")
Transaction = Callable[Concatenate[AsyncConnection, P], Awaitable[T]]

TRIES = 5
"""A transaction that meets a lock's limit or a deadlock is run so often."""

PATIENCE_S = 30.0
"""So long a transaction is tried again while the database is away."""

LONGEST_PAUSE_S = 0.5


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

    def __init__(self, url: URL, writer: AsyncEngine, reader: AsyncEngine) -> None:
        self.url = url
        self.patience_s = PATIENCE_S
        self.retried: Callable[[], None] = lambda: None
        self._writer = writer
        self._reader = reader
        self._glancer = reader if self.is_sqlite else postgres_engine.glancing(writer)
        self._owned: set[asyncio.Task[Any]] = set()
        self._closing = False
        self._grouped = GroupCommit(writer) if self.is_sqlite else None

    @classmethod
    async def open(cls, url: str, *, read_only: bool = False) -> Database:
        """Open the database at a SQLAlchemy URL (async driver); raises DatabaseUnusable with the mend."""
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            engines = sqlite_engine.engines(parsed, read_only=read_only)
        else:
            engines = postgres_engine.engines(parsed, unhurried=read_only)
        database = cls(parsed, *engines)
        try:
            async with database._reader.connect() as connection:
                # Reads the file: a bare `select 1` is answered without looking whether it is a database.
                await connection.run_sync(lambda sync: sync.dialect.has_table(sync, "alembic_version"))
        except (OSError, SQLAlchemyError) as error:
            await database.close()
            raise unusable(parsed, error) from error
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded database, which serves one process."""
        return self._writer.dialect.name == "sqlite"

    async def read(self, query: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, in one snapshot. Raises DatabaseAway."""
        return await self._owning(
            self._patiently(self._read, lambda connection: query(connection, *args, **kwargs))
        )

    async def glance(self, query: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads with one statement: a snapshot without a transaction around it."""
        return await self._owning(
            self._patiently(self._glance, lambda connection: query(connection, *args, **kwargs))
        )

    async def write(self, transaction: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction to its end; what it raises undoes it whole.

        Raises DatabaseAway (nothing was done) or CommitUnknown (it may have been).
        """
        return await self._owning(
            self._patiently(self._write, lambda connection: transaction(connection, *args, **kwargs))
        )

    async def write_first(self, transaction: Transaction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, for what somebody outside waits for."""
        return await self._owning(
            self._patiently(self._write_first, lambda connection: transaction(connection, *args, **kwargs))
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

    async def _patiently(
        self,
        run: Callable[[Callable[[AsyncConnection], Awaitable[T]]], Awaitable[T]],
        work: Callable[[AsyncConnection], Awaitable[T]],
    ) -> T:
        """Run it again when it met a lock, and for a while when the database is away."""
        loop = asyncio.get_running_loop()
        began, tries, pause = loop.time(), 0, 0.05
        while True:
            try:
                return await run(work)
            except (OSError, SQLAlchemyError) as error:
                tries += 1
                if is_away(error):
                    if self._closing or loop.time() + pause > began + self.patience_s:
                        raise DatabaseAway(cause(error)) from error
                elif not may_run_again(error) or tries >= TRIES:
                    raise
            self.retried()
            await asyncio.sleep(pause * (0.5 + random.random()))
            pause = min(LONGEST_PAUSE_S, pause * 2)

    async def _read(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._reader.connect() as connection:
            return await query(connection)

    async def _glance(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._glancer.connect() as connection:
            return await query(connection)

    async def _write(self, transaction: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        if self._grouped is not None:
            return await self._grouped.run(transaction, first=False)
        return await self._transact(transaction)

    async def _write_first(self, transaction: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        if self._grouped is not None:
            return await self._grouped.run(transaction, first=True)
        return await self._transact(transaction)

    async def _transact(self, transaction: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._writer.connect() as connection, connection.begin() as begun:
            result = await transaction(connection)
            try:
                await begun.commit()
            except (OSError, SQLAlchemyError) as error:
                if is_away(error):
                    raise CommitUnknown(cause(error)) from error
                raise
            return result

    async def close(self) -> None:
        """Wait for every transaction under way, then close all connections."""
        self._closing = True
        while self._owned:
            await asyncio.wait(self._owned)
        await self._reader.dispose()
        if self._writer is not self._reader:
            await self._writer.dispose()


def is_away(error: Exception) -> bool:
    """Whether the database could not be reached, or was lost on the way."""
    if isinstance(error, OSError | PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = _code(error)
    return (
        error.connection_invalidated
        or isinstance(error.orig, OSError)
        or code.startswith(postgres_engine.AWAY)
    )


def may_run_again(error: Exception) -> bool:
    """Whether the same transaction may fare better: busy, deadlock, serialization, a lock's limit."""
    if not isinstance(error, DBAPIError):
        return False
    return _code(error) in postgres_engine.AGAIN or sqlite_engine.is_busy(error.orig)


def _code(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")


def cause(error: Exception) -> str:
    """The database's own words, on one line."""
    text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return text.splitlines()[0]


MENDS: Mapping[str, str] = {
    "28": "check the user and the password (in a URL, special characters are percent-encoded)",
    "3D000": "create that database, or check its name",
    "42501": "let its user create tables: GRANT CREATE ON SCHEMA public TO that user",
    "53300": "let it take more connections, or let fewer processes use it",
}
"""What to do about what Postgres says, by the beginning of its code."""


def unusable(url: URL, error: Exception) -> DatabaseUnusable:
    """One line for people: what cannot be opened, why, and what to check."""
    if url.get_backend_name() == "sqlite":
        where, mend, away = url.database, "check that it exists and may be written", False
    else:
        where, away = f"{url.host}:{url.port or 5432}", is_away(error)
        code = _code(error) if isinstance(error, DBAPIError) else ""
        usual = "check that it runs there" if away else "check the user, the password and the database's name"
        mend = next((mend for start, mend in MENDS.items() if code.startswith(start)), usual)
    return DatabaseUnusable(
        f"DATABASE_URL: cannot open the database at {where} ({cause(error)}): {mend}", away=away
    )

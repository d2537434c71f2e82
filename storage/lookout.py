"""The lookout: a connection of its own, from which a process looks at what there is to do.

On Postgres it holds an advisory lock on the process's name for as long as it stands: the system closes it
with the process, however that ends, and the others see within a moment that nobody is there any more. It is a
hint that ends leases early, no more: what keeps a living process from harm is the token.
https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS
"""

from __future__ import annotations

import time

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from storage import agenda, postgres_engine
from storage.agenda import Agenda
from storage.engine import Database, cause, is_away
from storage.errors import DatabaseAway

HOLD = text("select pg_try_advisory_lock(hashtextextended(:owner, 0))")


class Lookout:
    """Looks, as the process of this name. One `look` at a time."""

    def __init__(
        self, database: Database, owner: str, *, card_interval_s: float, card_grace_s: float
    ) -> None:
        self._database = database
        self._given = (owner, card_interval_s, card_grace_s)
        self._owner = owner
        self._engine = None if database.is_sqlite else _engine(database)
        self._connection: AsyncConnection | None = None
        self._since = float("inf")
        self._reason = "" if database.is_sqlite else "the database was not asked yet"

    def reasons(self) -> list[str]:
        """Why the database cannot be used now; empty when it can."""
        return [self._reason] if self._reason else []

    def stood_for_s(self) -> float:
        """So long the connection has stood, with the lock held; negative when it does not."""
        return time.monotonic() - self._since if self._since != float("inf") else -1.0

    async def look(self) -> Agenda:
        """Look once. Raises DatabaseAway; the next look connects anew."""
        try:
            if self._engine is None:
                return await self._database.read(agenda.look, *self._given)
            if self._connection is None:
                self._connection = await self._engine.connect()
            if self.stood_for_s() < 0:
                await self._hold(self._connection)
            seen = await agenda.look(self._connection, *self._given)
        except (OSError, SQLAlchemyError) as error:
            await self._disconnect()
            url = self._database.url
            self._reason = f"the database at {url.host}:{url.port or 5432} does not answer ({cause(error)})"
            if is_away(error):
                raise DatabaseAway(cause(error)) from error
            raise
        self._reason = ""
        return seen

    async def _hold(self, connection: AsyncConnection) -> None:
        """Take the lock; an earlier connection of ours may still hold it, then at the next look."""
        if (await connection.execute(HOLD, {"owner": self._owner})).scalar():
            self._since = time.monotonic()

    async def _disconnect(self) -> None:
        self._since = float("inf")
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.invalidate()
                await connection.close()
            except (OSError, SQLAlchemyError):
                return  # it is gone already

    async def close(self) -> None:
        """Give the lock back with the connection."""
        await self._disconnect()
        if self._engine is not None:
            await self._engine.dispose()


def _engine(database: Database) -> AsyncEngine:
    return create_async_engine(
        database.url.set(query={}),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args=postgres_engine.connect_args(database.url),
    )

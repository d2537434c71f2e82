"""Brings the database to the schema that this program needs, while older processes go on with it.

Rule: expand first, contract later. A step named `pre_` only adds; a step named `post_` takes away what no
program since the schema's floor uses, and raises the floor. A program runs on any schema whose floor it has
reached, also on one that is newer than itself.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from storage import postgres_engine, sqlite_engine
from storage.engine import Database, is_away, may_run_again, unusable
from storage.errors import DatabaseUnusable
from storage.tables import schema_floor

HEAD = "0003"
"""The newest revision; a test holds it to the newest file."""

MIGRATION_LOCK = 4_702_111_234
"""Postgres' advisory lock: of several processes that start at once, one migrates and the others wait."""


LOCK_S = 2.0
"""A step waits so long for a table's lock and then lets everybody else go first: they queue up behind it."""

PATIENCE_S = 120.0


async def upgrade(url: str) -> bool:
    """Migrate to the newest revision; whether anything was to do. Raises DatabaseUnusable with the mend."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        try:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unusable(parsed, error) from error
    engine = _engine(parsed)
    until = asyncio.get_running_loop().time() + PATIENCE_S
    try:
        while True:
            try:
                return await _upgrade(engine)
            except DBAPIError as error:
                locked = may_run_again(error) and not is_away(error)
                if not locked or asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.5 + random.random())
    except (OSError, SQLAlchemyError) as error:
        raise unusable(parsed, error) from error
    finally:
        await engine.dispose()


def _engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(url)
        sqlite_engine.prepare(engine, writes=True)
        return engine
    engine, _ = postgres_engine.engines(url, unhurried=True)
    return engine


async def _upgrade(engine: AsyncEngine) -> bool:
    async with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            await connection.execute(text(f"set local lock_timeout = '{LOCK_S * 1000:.0f}ms'"))
        revision = await _revision(connection)
        if revision == HEAD or await connection.run_sync(_is_ahead, revision):
            return False
        await connection.run_sync(_migrate)
        return True


async def is_current(database: Database) -> bool:
    """Whether this program can work with the database as it is."""

    async def usable(connection: AsyncConnection) -> bool:
        revision = await _revision(connection)
        return revision == HEAD or await connection.run_sync(_is_ahead, revision)

    return await database.read(usable)


def _is_ahead(connection: Connection, revision: str | None) -> bool:
    """Whether a newer program has expanded the schema, and this one may go on with it."""
    if revision is None or revision <= HEAD:
        return False
    if not connection.dialect.has_table(connection, schema_floor.name):
        return False
    floor = connection.execute(select(schema_floor.c.revision)).scalar()
    return floor is not None and floor <= HEAD


async def _revision(connection: AsyncConnection) -> str | None:
    return await connection.run_sync(_revision_of)


def _revision_of(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    revision = connection.execute(text("select version_num from alembic_version")).scalar()
    return None if revision is None else str(revision)


def _migrate(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415  slow to import, and needed only when there is something to do
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    attributes: dict[str, Any] = config.attributes
    attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise DatabaseUnusable(
            "DATABASE_URL: the database was made by another version of Watchkeeper (schema "
            f"{_revision_of(connection)}, this one knows {HEAD}): install that version or a newer one"
        ) from error

"""Brings the database to the schema that this program needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from storage.engine import Database, prepare_sqlite, why_unusable
from storage.errors import DatabaseUnusable

HEAD = "0001"
"""The newest revision; a test holds it to the newest file."""

MIGRATION_LOCK = 4_702_111_234
"""Postgres' advisory lock: of several processes that start at once, one migrates and the others wait."""


async def upgrade(url: str) -> bool:
    """Migrate to the newest revision; whether anything was to do. Raises DatabaseUnusable with the mend."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        try:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseUnusable(why_unusable(parsed, error)) from error
    engine = create_async_engine(parsed)
    if parsed.get_backend_name() == "sqlite":
        prepare_sqlite(engine, writes=True)
    try:
        async with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                await connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            if await _revision(connection) == HEAD:
                return False
            await connection.run_sync(_migrate)
            return True
    except (OSError, DBAPIError) as error:
        raise DatabaseUnusable(why_unusable(parsed, error)) from error
    finally:
        await engine.dispose()


async def is_current(database: Database) -> bool:
    """Whether the database is at the newest revision."""
    return await database.read(_revision) == HEAD


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

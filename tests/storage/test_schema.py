"""The database is brought to the schema that the program needs, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from storage import schema
from storage.engine import Database
from storage.errors import DatabaseUnusable
from storage.tables import metadata

MIGRATIONS = Path(schema.__file__).parent / "migrations"


async def do(url: str, *statements: str) -> None:
    """Change a database behind the program's back."""
    database = await Database.open(url)

    async def write(tx: Any) -> None:
        for statement in statements:
            await tx.execute(text(statement))

    await database.write(write)
    await database.close()


async def tables(url: str) -> set[str]:
    database = await Database.open(url)

    async def query(tx: Any) -> set[str]:
        return set(await tx.run_sync(lambda connection: inspect(connection).get_table_names()))

    try:
        return await database.read(query)
    finally:
        await database.close()


def test_the_newest_migration_is_the_one_that_the_program_needs() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


async def test_the_migrations_make_exactly_the_tables_that_the_program_uses(database: Database) -> None:
    async def query(tx: Any) -> list[Any]:
        def compare(connection: Any) -> list[Any]:
            return list(compare_metadata(MigrationContext.configure(connection), metadata))

        return list(await tx.run_sync(compare))

    assert await database.read(query) == []


async def test_a_new_database_is_migrated_once(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'deep' / 'folder' / 'new.db'}"
    assert await schema.upgrade(url) is True
    assert await schema.upgrade(url) is False
    database = await Database.open(url)
    assert await schema.is_current(database)
    await database.close()


async def test_a_database_without_tables_is_not_current(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite+aiosqlite:///{tmp_path / 'bare.db'}")
    assert not await schema.is_current(database)
    await database.close()


async def test_a_database_that_a_newer_version_has_expanded_is_used_as_it_is(url: str) -> None:
    await do(url, "update alembic_version set version_num = '9999'")
    assert await schema.upgrade(url) is False
    database = await Database.open(url)
    assert await schema.is_current(database)
    await database.close()


async def test_a_database_of_a_newer_version_is_refused_with_the_mend_and_left_alone(url: str) -> None:
    await do(
        url,
        "update alembic_version set version_num = '9999'",
        "update schema_floor set revision = '9998'",  # it has taken away what this version uses
    )
    with pytest.raises(DatabaseUnusable, match="schema 9999"):
        await schema.upgrade(url)
    database = await Database.open(url)
    assert not await schema.is_current(database)
    await database.close()


async def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'half.db'}"
    await do(url, "create table outbox (x integer)")
    with pytest.raises(DatabaseUnusable):
        await schema.upgrade(url)
    assert await tables(url) == {"outbox"}


async def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnusable) as refused:
        await schema.upgrade(f"sqlite+aiosqlite:///{tmp_path / 'file' / 'new.db'}")
    assert "\n" not in str(refused.value)
    assert "DATABASE_URL" in str(refused.value)

"""The database is brought to the schema that the program needs, whole or not at all."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from storage import schema
from storage.engine import Database
from storage.errors import DatabaseUnusable
from storage.tables import metadata
from tests.storage.fresh import driven, shared_postgres

MIGRATIONS = Path(schema.__file__).parent / "migrations"
_numbers = itertools.count()


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


# --- while older processes go on ----------------------------------------------------------------------------


def columns_at(revision: str) -> dict[tuple[str, str], tuple[bool, bool]]:
    """Every column of a schema: whether it may be null, and whether it has a default."""
    engine = create_engine("sqlite://")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        seen = inspect(connection)
        found = {
            (table, column["name"]): (column["nullable"], column["default"] is not None)
            for table in seen.get_table_names()
            for column in seen.get_columns(table)
        }
    engine.dispose()
    return found


def expanding_steps() -> list[tuple[str, str]]:
    """The steps named `pre_`, each with the schema before it."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    return [
        (str(script.down_revision), script.revision)
        for script in scripts
        if script.down_revision is not None and "_pre_" in Path(script.path).name
    ]


@pytest.mark.parametrize("before, after", expanding_steps())
def test_a_step_that_expands_leaves_everything_that_older_programs_use(before: str, after: str) -> None:
    old, new = columns_at(before), columns_at(after)
    assert old.keys() <= new.keys()
    tables_before = {table for table, _ in old}
    for table, column in new.keys() - old.keys():
        if table in tables_before:  # an older program does not name it when it inserts
            nullable, has_default = new[table, column]
            assert nullable or has_default, f"{table}.{column}"


def test_every_step_says_whether_it_expands_or_contracts() -> None:
    names = [path.name for path in (MIGRATIONS / "versions").glob("0*.py")]
    assert all(name.split("_")[1] in {"pre", "post"} for name in names)


@pytest.fixture
def empty_url() -> Iterator[str]:
    """A Postgres database without any table."""
    server, name = shared_postgres(), f"empty_{os.getpid()}_{next(_numbers)}"
    asyncio.run(server.create(name))
    yield driven(server.url(name))
    asyncio.run(server.drop(name))


async def test_of_several_that_start_at_once_one_migrates_and_the_others_wait(empty_url: str) -> None:
    done = await asyncio.gather(*(schema.upgrade(empty_url) for _ in range(4)))
    assert sorted(done) == [False, False, False, True]


async def test_a_step_that_finds_a_table_in_use_lets_everybody_else_go_first(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_S", 0.2)
    await schema.upgrade(empty_url)
    await do(empty_url, "drop index ix_inbox_receipts", "drop index ix_cards_due", "drop table claims")
    await do(empty_url, "drop index ix_outbox_conversation")
    await do(empty_url, "drop index ix_settlements_unreleased", "drop table schema_floor")
    await do(empty_url, "drop index ix_conversations_active", "drop index ix_conversations_resumable")
    await do(empty_url, "create index ix_conversations_claimable on conversations (lease_expires)")
    await do(empty_url, "alter table cards drop column posted_anew")
    await do(empty_url, "update alembic_version set version_num = '0001'")
    old = await Database.open(empty_url)
    in_use, done = asyncio.Event(), asyncio.Event()

    async def use(tx: Any) -> None:
        await tx.execute(text("select count(*) from cards"))
        in_use.set()
        while not done.is_set():
            await tx.execute(text("select 1"))
            await asyncio.sleep(0.05)

    using = asyncio.create_task(old.write(use))
    await in_use.wait()
    migrating = asyncio.create_task(schema.upgrade(empty_url))
    await asyncio.sleep(0.4)
    assert not migrating.done()
    async with asyncio.timeout(2):  # somebody else comes through between its tries
        await old.write(lambda tx: tx.execute(text("update cards set tries = tries")))
    done.set()
    await using
    assert await migrating is True
    await old.close()

"""A migrated, empty database for each test. No test knows which kind it is."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import schema
from storage.engine import Database
from tests.storage.world import World


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database file at the newest schema, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "empty.db"
    asyncio.run(schema.upgrade(f"sqlite+aiosqlite:///{path}"))
    return path


@pytest.fixture
def url(migrated: Path, tmp_path: Path) -> str:
    """The URL of a database of this test's own."""
    path = tmp_path / "watchkeeper.db"
    shutil.copyfile(migrated, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """An open database."""
    opened = await Database.open(url)
    yield opened
    await opened.close()


@pytest.fixture
def world(database: Database) -> World:
    """A thread in which people and workers act on the database."""
    return World(database)

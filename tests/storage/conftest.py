"""A migrated, empty database for each test. No test knows which kind it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.storage.fresh import fresh_url
from tests.storage.world import World


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a database of this test's own."""
    return fresh_url(tmp_path)


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

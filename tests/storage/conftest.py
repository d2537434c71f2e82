"""A migrated, empty database for each test, and each test on both kinds. No test knows which it has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.storage.fresh import FRESH, drop
from tests.storage.world import World


@pytest.fixture(params=list(FRESH))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of this test's own."""
    kind: str = request.param
    url = FRESH[kind](tmp_path)
    yield url
    drop(url)


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

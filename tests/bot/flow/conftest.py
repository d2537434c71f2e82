"""A migrated, empty database for each test; most are told on SQLite, what processes share on Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.storage.fresh import drop, postgres_url, sqlite_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a database of this test's own."""
    return sqlite_url(tmp_path)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """An open database."""
    opened = await Database.open(url)
    yield opened
    await opened.close()


@pytest.fixture
def shared_url() -> Iterator[str]:
    """The URL of a database that several processes can share."""
    url = postgres_url()
    yield url
    drop(url)


@pytest.fixture
async def shared(shared_url: str) -> AsyncIterator[Database]:
    """A database that several processes can share, open."""
    opened = await Database.open(shared_url)
    yield opened
    await opened.close()

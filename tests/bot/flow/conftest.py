"""A migrated, empty database for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.storage.fresh import sqlite_url


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

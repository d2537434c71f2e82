"""New, migrated, empty databases: one is migrated for the whole run, each test gets a copy."""

from __future__ import annotations

import asyncio
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from storage import schema


def fresh_url(folder: Path) -> str:
    """The URL of a database of one's own in this folder."""
    path = folder / "watchkeeper.db"
    shutil.copyfile(Path(_migrated().name) / "empty.db", path)
    return f"sqlite+aiosqlite:///{path}"


@cache
def _migrated() -> TemporaryDirectory[str]:
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="migrated-")
    asyncio.run(schema.upgrade(f"sqlite+aiosqlite:///{folder.name}/empty.db"))
    return folder

"""New, migrated, empty databases: one is migrated for the whole run, each test gets a copy."""

from __future__ import annotations

import asyncio
import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from storage import schema


def fresh_url(folder: Path) -> str:
    """The URL of a database of one's own in this folder; to be asked for outside of any event loop."""
    path = folder / "watchkeeper.db"
    shutil.copyfile(_migrated(), path)
    return f"sqlite+aiosqlite:///{path}"


@cache
def _migrated() -> Path:
    folder = Path(mkdtemp(prefix="migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    asyncio.run(schema.upgrade(f"sqlite+aiosqlite:///{folder / 'empty.db'}"))
    return folder / "empty.db"

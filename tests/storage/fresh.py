"""New, migrated, empty databases: one of each kind is migrated for the whole run, each test gets a copy."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from storage import schema
from tests.servers.postgres import PostgresServer

_numbers = itertools.count(1)


def sqlite_url(folder: Path) -> str:
    """The URL of a SQLite file of one's own in this folder; to be asked for outside of any event loop."""
    path = folder / "watchkeeper.db"
    shutil.copyfile(_migrated_file(), path)
    return f"sqlite+aiosqlite:///{path}"


def postgres_url(_: Path | None = None) -> str:
    """The URL of a Postgres database of one's own; to be asked for outside of any event loop."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    asyncio.run(shared_postgres().create(name, template=_migrated_database()))
    return driven(shared_postgres().url(name))


def drop(url: str) -> None:
    """Remove a database that a test got here."""
    if url.startswith("postgresql"):
        asyncio.run(shared_postgres().drop(url.rpartition("/")[2]))


def driven(url: str) -> str:
    """The same database as SQLAlchemy is told of it."""
    return url.replace("postgresql://", "postgresql+asyncpg://")


FRESH: Mapping[str, Callable[[Path], str]] = {"sqlite": sqlite_url, "postgres": postgres_url}
"""The databases that the program is built for."""


@cache
def shared_postgres() -> PostgresServer:
    """The server of this interpreter; it ends with it."""
    server = PostgresServer().start()
    atexit.register(server.close)
    return server


@cache
def _migrated_database() -> str:
    name = f"migrated_{os.getpid()}"
    url = asyncio.run(shared_postgres().create(name))
    asyncio.run(schema.upgrade(driven(url)))
    return name


@cache
def _migrated_file() -> Path:
    folder = Path(mkdtemp(prefix="migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    asyncio.run(schema.upgrade(f"sqlite+aiosqlite:///{folder / 'empty.db'}"))
    return folder / "empty.db"

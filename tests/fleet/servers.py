"""The Postgres and the Valkey of all fleets of one interpreter: they are struck, so nobody else has them."""

from __future__ import annotations

import asyncio
import atexit
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from storage import schema
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

T = TypeVar("T")

MIGRATED = "migrated"
_numbers = itertools.count(1)
_keeper = ThreadPoolExecutor(1, thread_name_prefix="servers")
"""A server dies with the thread that started it, so one thread starts and restarts all of them."""


async def in_their_thread(work: Callable[[], T]) -> T:
    """Start, stop or restart a server without holding up the loop."""
    return await asyncio.get_running_loop().run_in_executor(_keeper, work)


@cache
def postgres() -> PostgresServer:
    """Running; the first to ask does so in their thread."""
    server = PostgresServer().start()
    atexit.register(server.close)
    return server


@cache
def valkey() -> ValkeyServer:
    """Running; the first to ask does so in their thread."""
    server = ValkeyServer().launch()
    atexit.register(server.kill)
    return server


async def fresh_database() -> str:
    """The name of a migrated, empty database."""
    server = await in_their_thread(postgres)
    await _migrate_once(server)
    name = f"fleet_{next(_numbers)}"
    await server.create(name, template=MIGRATED)
    return name


_migrated: set[str] = set()


async def _migrate_once(server: PostgresServer) -> None:
    """In their thread, whose loop nobody else holds up."""
    if MIGRATED not in _migrated:
        await in_their_thread(lambda: asyncio.run(_migrate(server)))
        _migrated.add(MIGRATED)


async def _migrate(server: PostgresServer) -> None:
    await server.drop(MIGRATED)
    url = await server.create(MIGRATED)
    await schema.upgrade(url.replace("postgresql://", "postgresql+asyncpg://"))

"""The database of a service, at the schema that it needs; waited for while it cannot be reached."""

from __future__ import annotations

import asyncio
import socket

import structlog

from bot.measures import Measures
from bot.settings import Settings
from bot.web.server import Server, make_app
from storage import schema
from storage.engine import Database
from storage.errors import DatabaseUnusable

log = structlog.get_logger()

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0


async def opened(settings: Settings, listener: socket.socket | None) -> Database:
    """The open database. Raises DatabaseUnusable when waiting would not help."""
    try:
        return await _open(settings)
    except DatabaseUnusable as error:
        if not error.away:
            raise
        log.warning("database_away", error=str(error))
        return await _wait(settings, listener, str(error))


async def _open(settings: Settings) -> Database:
    await schema.upgrade(settings.database_url)
    return await Database.open(settings.database_url)


async def _wait(settings: Settings, listener: socket.socket | None, reason: str) -> Database:
    """Try on; meanwhile /readyz says why nothing works yet."""

    async def nothing() -> None:
        return

    app = make_app(reasons=lambda: [reason], measures=Measures(), refresh=nothing)
    server = await Server.start(app, host=settings.env.host, port=settings.env.port, listener=listener)
    pause = FIRST_PAUSE_S
    try:
        while True:
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)
            try:
                database = await _open(settings)
            except DatabaseUnusable as error:
                if not error.away:
                    raise
                reason = str(error)
                continue
            log.warning("database_back")
            return database
    finally:
        await server.close()

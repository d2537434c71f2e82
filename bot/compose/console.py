"""The web console as the platform of the service: a channel in a file beside the database."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any

import structlog
from aiohttp import web

from bot.compose import service
from bot.compose.incident import BundledIncident, has_own_world
from bot.compose.platform import Inside
from bot.console import records_port
from bot.console.channel import Channel
from bot.console.chat import ConsoleChat
from bot.console.people import RESPONDERS
from bot.console.records_port import Opening, Process, Standing
from bot.console.say import Mouth
from bot.console.web import ConsoleWeb
from bot.settings import Settings
from storage import reports
from storage.engine import Database

log = structlog.get_logger()

CARD_INTERVAL_S = 0.3
SCRIPTED = "(scripted)"


async def run(settings: Settings, listener: socket.socket | None, restart_code: int | None) -> int:
    """Run until a signal ends it; returns the exit code, `restart_code` when the page asked for that."""
    path = settings.env.database.path
    assert path is not None, "the console stands beside a SQLite file"
    bundled = None if has_own_world(settings) else await asyncio.to_thread(BundledIncident.open, path.parent)
    if bundled is not None:
        port = listener.getsockname()[1] if listener is not None else settings.env.port
        settings = bundled.as_world(settings, port)
    channel = await Channel.open(path.with_name(f"{path.stem}.console.db"))
    console = ConsolePlatform(settings, channel, bundled, supervised=restart_code is not None)
    code = await service.run(settings, console, listener)
    return restart_code if console.restarts and restart_code is not None else code


class ConsolePlatform:
    """The console of one process."""

    card_interval_s: float | None = CARD_INTERVAL_S

    def __init__(
        self, settings: Settings, channel: Channel, incident: BundledIncident | None, *, supervised: bool
    ) -> None:
        self.restarts = False
        self._supervised = supervised
        self._settings = settings
        self._channel = channel
        self._incident = incident
        self.chat = ConsoleChat(channel)
        self.responders = RESPONDERS
        self._web: ConsoleWeb | None = None
        self._mouth: Mouth | None = None
        self._handing_in: asyncio.Task[None] | None = None

    def open(self, inside: Inside) -> None:
        """Build the pages."""
        self._mouth = Mouth(self._channel, inside.accept)
        behind = records_port.Inside(
            records=DatabaseRecords(inside.database),
            policy=self._settings.policy,
            responders=self.responders,
            process=self._process(inside.model_name),
            stage=self._incident or PlainStage(),
        )
        self._web = ConsoleWeb(self._channel, self._mouth, behind, self._settings.env.host)

    def add_routes(self, app: web.Application) -> None:
        """The pages, and what they ask for."""
        assert self._web is not None
        self._web.add_routes(app)
        if self._incident is not None:
            self._incident.add_routes(app)

    async def connect(self) -> None:
        """Hand in what was said when the last process ended before it could."""
        assert self._mouth is not None
        self._handing_in = asyncio.create_task(self._mouth.keep_handing_in(), name="hand in")

    def reasons(self) -> list[str]:
        """Nothing is in the way of a channel in a file."""
        return []

    async def close(self) -> None:
        """Let the streams end."""
        if self._web is not None:
            self._web.close()
        if self._handing_in is not None:
            self._handing_in.cancel()
            await asyncio.gather(self._handing_in, return_exceptions=True)

    def _process(self, model_name: str) -> Process:
        """Without a supervisor nobody would start this process again, so nothing here ends it."""
        scripted = SCRIPTED in model_name
        if not self._supervised:
            return Process(model_name, scripted)
        return Process(model_name, scripted, kill=self._kill, restart=self._restart)

    def _kill(self) -> None:
        log.warning("killed_by_the_page")
        os.kill(os.getpid(), signal.SIGKILL)

    def _restart(self) -> None:
        log.info("restarted_by_the_page")
        self.restarts = True
        os.kill(os.getpid(), signal.SIGTERM)


class DatabaseRecords:
    """The records for the side panel, in the forms of the reading commands."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, conversation_id: str) -> Standing:
        """How a conversation stands."""
        return Standing(*await reports.standing(self._database, conversation_id))

    async def settles(self, conversation_id: str) -> list[dict[str, Any]]:
        """Its settle records."""
        return await reports.settle_records(self._database, conversation_id)

    async def conversation(self, conversation_id: str) -> dict[str, Any] | None:
        """What happened in it."""
        return await reports.conversation(self._database, conversation_id)


class PlainStage:
    """An alert without a shop behind it: the tools are what the configuration names."""

    choices: Sequence[tuple[str, str]] = ()

    async def begin(self, choice: str) -> Opening:
        """One alert, always the same."""
        return Opening(
            "**CheckoutSlow** is firing: 5 % of checkouts took longer than 2 s in the last five minutes.",
            "why is checkout slow?",
        )

    def told(self) -> str:
        """Nobody knows."""
        return ""

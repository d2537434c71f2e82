"""What the service asks of a platform; Slack and the console are built to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from bot.measures import Measures
from bot.ports import Accept, Chat
from storage.engine import Database


@dataclass(frozen=True, slots=True)
class Inside:
    """What a platform is given of the service.

    The door for what comes in, the records for reading, and the instruments.
    """

    accept: Accept
    database: Database
    model_name: str
    measures: Measures


class Platform(Protocol):
    """A platform with its ways in and out."""

    @property
    def chat(self) -> Chat:
        """The way out."""
        ...

    @property
    def responders(self) -> frozenset[str]:
        """The ids of the people with that role."""
        ...

    @property
    def card_interval_s(self) -> float | None:
        """How often a card may be shown where the configuration does not say; None: its default."""
        ...

    def open(self, inside: Inside) -> None:
        """Build the ways in. Nothing comes in before `connect`, or the web server's start."""
        ...

    def add_routes(self, app: web.Application) -> None:
        """Add what this platform serves over HTTP."""
        ...

    async def connect(self) -> None:
        """Reach the platform. Unusable when it rejects us, Temporary while it cannot be reached."""
        ...

    def reasons(self) -> list[str]:
        """Why nothing can come in now, one line each; empty when it can."""
        ...

    async def close(self) -> None:
        """Let nothing more in; the way out stays open until its own `close`."""
        ...

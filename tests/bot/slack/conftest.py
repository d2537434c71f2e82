"""A test Slack, and the adapter connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from bot.ports import Incoming
from bot.slack.api import SlackApi, web_client
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from core.arrivals import Thread
from core.card import Card, CardState
from tests.servers.slack import SlackServer

FOUND_WITHIN_S = 5


@dataclass
class Inbox:
    """Where a test stores what comes in. `broken` makes that many stores fail."""

    stored: list[Incoming] = field(default_factory=list)
    tried: int = 0
    broken: int = 0

    async def accept(self, incoming: Incoming) -> None:
        self.tried += 1
        if self.broken > 0:
            self.broken -= 1
            raise OSError("the database is away")
        self.stored.append(incoming)

    @property
    def keys(self) -> set[str]:
        return {incoming.key for incoming in self.stored}


async def show(chat: SlackChat, thread: Thread, ref: str | None, card: Card) -> str:
    """Wait for a place in the budget and show the card, as the reconciler does."""
    await chat.card_slot(thread, ref, urgent=card.state is CardState.RELEASED)
    return await chat.show_card(thread, ref, card)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer(retry_delays=(0.0, 0.2, 0.2, 0.4)) as server:
        yield server


@pytest.fixture
async def connection(slack: SlackServer) -> AsyncIterator[Connection]:
    """Not connected yet."""
    api = SlackApi(web_client(slack.bot_token, slack.api_url))
    yield Connection(api)
    await api.close()


@pytest.fixture
async def chat(connection: Connection) -> SlackChat:
    await connection.connect()
    return SlackChat(connection)


@pytest.fixture
async def thread(slack: SlackServer) -> Thread:
    """A thread that Ana began by mentioning us in #inc."""
    root = await slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
    return Thread("slack", slack.team_id, slack.workspace.channel("#inc").id, root)

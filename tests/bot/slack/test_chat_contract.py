"""Slack keeps what every platform keeps."""

from __future__ import annotations

import pytest

from bot.slack.chat import SlackChat
from core.arrivals import Thread
from tests.bot.chat_contract import *  # noqa: F403
from tests.bot.chat_contract import Place
from tests.servers.slack import SlackServer


@pytest.fixture
async def place(slack: SlackServer, chat: SlackChat, thread: Thread) -> Place:
    async def say(who: str, words: str) -> str:
        return await slack.say(who, "#inc", words, thread=thread.thread)

    async def receipts(ref: str) -> list[str]:
        return list(slack.message(thread.channel, ref).reactions)

    async def told(who: str) -> list[str]:
        return [one.text for one in slack.ephemerals if one.user == user(who)]

    def user(who: str) -> str:
        return slack.workspace.user({"guest": "Gus", "stranger": "Xeno"}.get(who, who)).id

    return Place(chat, thread, say, receipts, told, user)

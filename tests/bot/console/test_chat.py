"""The console keeps what every platform keeps."""

from __future__ import annotations

import pytest

from bot.console.channel import Channel
from bot.console.chat import ConsoleChat
from bot.console.identity import thread_of
from bot.console.rows import Kind
from bot.errors import Closed, Gone
from tests.bot.chat_contract import *  # noqa: F403
from tests.bot.chat_contract import ANSWER, LIVE, Place


@pytest.fixture
async def place(channel: Channel) -> Place:
    root = await channel.write(Kind.PERSON, "ana", "why is checkout slow?")

    async def say(who: str, words: str) -> str:
        return (await channel.write(Kind.PERSON, who.lower(), words, thread=root.ref)).ref

    async def receipts(ref: str) -> list[str]:
        message = await channel.message(ref)
        assert message is not None
        return list(message.receipts)

    async def told(who: str) -> list[str]:
        return [note.text for note in await channel.notes(root.ref, who.lower())]

    return Place(ConsoleChat(channel), thread_of(root.ref), say, receipts, told, _id)


def _id(who: str) -> str:
    return {"guest": "gus", "stranger": "eve"}.get(who, who.lower())


async def test_what_is_not_there_is_gone(place: Place) -> None:
    with pytest.raises(Gone):
        await place.chat.show_card(place.thread, "1.000000", LIVE)
    with pytest.raises(Closed):
        await place.chat.post(thread_of("1.000000"), ANSWER)
    with pytest.raises(Gone):
        await place.chat.set_receipt(place.thread, "1.000000", "eyes", None)


async def test_the_alert_that_began_a_thread_is_told_as_a_programs(channel: Channel) -> None:
    alert = await channel.write(Kind.APP, "Alertmanager", "checkout is slow")
    [earlier] = await ConsoleChat(channel).earlier_messages(thread_of(alert.ref), alert.sent_at + 1)
    assert (earlier.author_name, earlier.is_bot, earlier.text) == ("Alertmanager", True, "checkout is slow")

"""What a person says or presses on the console: stored in the channel, then handed in like any platform's.

Rule 1: the key of a message is its place in the channel; handing it in again does nothing.
Rule 2: what was stored is handed in, also after a crash in between.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

import structlog

from bot.console import delivery, people
from bot.console.channel import Channel
from bot.console.identity import US, message_key, thread_of
from bot.console.people import Person
from bot.console.rows import Kind, Message
from bot.ports import Accept, Incoming
from bot.words.speech import asks_to_stop, cleaned, marker_of
from core.arrivals import Addressed, Arrival, Deletion, Edit, Marker, Source

log = structlog.get_logger()

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
NAMES = "|".join([US, *people.BY_ID])
FIRST_MENTION = re.compile(rf"\s*@(?P<name>{NAMES})\b\s*[:,]?\s*", re.IGNORECASE)
MENTIONS_US = re.compile(rf"(?<![\w@])@{US}\b", re.IGNORECASE)
TRY_AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Speech:
    """A message's words, without our name in front, and what they ask for."""

    text: str
    marker: Marker
    addressed: Addressed
    source: Source


def understood(raw: str) -> Speech:
    """Read one message. Pure."""
    addressed, rest = Addressed.NOBODY, cleaned(raw)
    found = FIRST_MENTION.match(rest)
    if found is not None:
        addressed = Addressed.BOT if found["name"].lower() == US else Addressed.PERSON
        rest = rest[found.end() :] if addressed is Addressed.BOT else rest
    mentioned = MENTIONS_US.search(CODE.sub(" ", raw)) is not None
    stop = asks_to_stop(rest, to_us=addressed is Addressed.BOT)
    talk = Source.MENTION if mentioned else Source.THREAD_REPLY
    return Speech(rest, marker_of(rest), addressed, Source.STOP_REQUEST if stop else talk)


class Mouth:
    """Says things for the cast, and hands them in."""

    def __init__(self, channel: Channel, accept: Accept) -> None:
        self._channel = channel
        self._accept = accept
        self._handing_in = asyncio.Lock()

    async def say(self, person: Person, text: str, thread: str | None = None) -> Message:
        """Write a message; without `thread` it begins one."""
        speech = understood(text)

        def deliver(ref: str, at: float) -> str:
            return delivery.to_json(_arrival(speech, person.id, thread, ref, at))

        to_nobody = thread is None and speech.source is Source.THREAD_REPLY
        message = await self._channel.write(
            Kind.PERSON, person.id, text, thread=thread, delivery=None if to_nobody else deliver
        )
        await self.hand_in()
        return message

    async def edit(self, message: Message, text: str) -> None:
        """Change one's own words."""
        speech, key = understood(text), message_key(message.ref)
        edit = Edit(
            thread_of(message.thread),
            key,
            f"{key}:edit:{time.time():.6f}",
            speech.text,
            speech.marker,
            speech.addressed,
        )
        await self._channel.edit(message.ref, text, delivery.to_json(edit))
        await self.hand_in()

    async def delete(self, message: Message) -> None:
        """Take one's own words back."""
        deletion = Deletion(thread_of(message.thread), message_key(message.ref))
        await self._channel.delete(message.ref, delivery.to_json(deletion))
        await self.hand_in()

    async def press_stop(self, person: Person, card: Message, turn_id: str) -> None:
        """Press the button that the card bears, or bore a moment ago."""
        at = time.time()
        click = Arrival(
            thread=thread_of(card.thread),
            key=f"{message_key(card.ref)}:stop:{at:.6f}:{person.id}",
            source=Source.STOP_REQUEST,
            author_id=person.id,
            text="[pressed Stop]",
            message_ref=card.ref,
            sent_at=at,
            inside_thread=True,
            stops_turn=turn_id,
        )
        await self._channel.press(delivery.to_json(click))
        await self.hand_in()

    async def hand_in(self) -> None:
        """Hand in everything that was not accepted yet, oldest first."""
        async with self._handing_in:
            for number, body in await self._channel.deliveries():
                await self._accept(_read(body))
                await self._channel.delivered(number)

    async def keep_handing_in(self) -> None:
        """For ever: hand in what could not be accepted when it was said."""
        while True:
            try:
                await self.hand_in()
            except Exception as error:  # noqa: BLE001 - whatever went wrong, it stays to be handed in
                log.warning("console_not_handed_in", error=str(error).partition("\n")[0])
            await asyncio.sleep(TRY_AGAIN_S)


def _read(body: str) -> Incoming:
    return delivery.from_json(body)


def _arrival(speech: Speech, author: str, thread: str | None, ref: str, at: float) -> Arrival:
    return Arrival(
        thread=thread_of(thread or ref),
        key=message_key(ref),
        source=speech.source,
        author_id=author,
        text=speech.text,
        marker=speech.marker,
        addressed=speech.addressed,
        message_ref=ref,
        sent_at=at,
        may_open=speech.source is Source.MENTION,
        inside_thread=thread is not None,
    )

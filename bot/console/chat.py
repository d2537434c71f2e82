"""The `Chat` port over the console's channel. It has no rate limits and no network."""

from __future__ import annotations

from bot.console import cardform, people
from bot.console.channel import Channel, NoSuchThread
from bot.console.identity import US, message_key, thread_of
from bot.console.rows import Kind, Message
from bot.errors import Closed, Gone
from bot.ports import AboutToSend, Found, Post, at_once
from bot.words import split as parts
from bot.words.metadata import of_card, of_post
from core.arrivals import Author, EarlierMessage, Thread
from core.card import Card, CardState

MOST_CHARACTERS = 12_000
MOST_EARLIER = 200


class ConsoleChat:
    """The console as people and we talk on it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    # --- writing ------------------------------------------------------------------------------------------

    async def card_slot(self, thread: Thread, ref: str | None, *, urgent: bool) -> None:
        """There is always a place."""

    async def show_card(self, thread: Thread, ref: str | None, card: Card) -> str:
        """Keep the card; pages draw it."""
        event_type, payload = of_card(card)
        kept = cardform.to_json(card)
        if ref is None:
            return await self._write(thread, card.headline, event_type, payload, card=kept)
        if not await self._channel.revise(ref, card=kept, payload=payload, event_type=event_type):
            raise Gone(f"there is no message {ref}", "message_not_found")
        return ref

    async def post(self, thread: Thread, post: Post, about_to_send: AboutToSend = at_once) -> str:
        """Post an answer, a note or a chart."""
        await about_to_send()
        event_type, payload = of_post(post)
        return await self._write(thread, post.text, event_type, payload, picture=post.chart)

    async def tell_privately(self, thread: Thread, user_id: str, text: str) -> None:
        """Words that only this person's page shows."""
        try:
            await self._channel.whisper(thread.thread, user_id, text)
        except NoSuchThread:
            raise Closed(f"there is no thread {thread.thread}", "thread_not_found") from None

    async def tell_directly(
        self, thread: Thread, user_id: str, post: Post, about_to_send: AboutToSend = at_once
    ) -> str:
        """The console has no place besides its threads."""
        raise Closed("nobody is reached outside of a thread here", "no_direct_messages")

    async def set_receipt(self, thread: Thread, ref: str, receipt: str | None, previous: str | None) -> None:
        """Our one reaction, changed in one step."""
        if not await self._channel.react(ref, receipt, previous):
            raise Gone(f"there is no message {ref}", "message_not_found")

    async def delete(self, thread: Thread, ref: str) -> None:
        """Delete a message of ours."""
        await self._channel.delete(ref)

    async def _write(
        self,
        thread: Thread,
        text: str,
        event_type: str,
        payload: dict[str, object],
        *,
        card: str | None = None,
        picture: bytes | None = None,
    ) -> str:
        try:
            written = await self._channel.write(
                Kind.OURS,
                US,
                text,
                thread=thread.thread,
                event_type=event_type,
                payload=payload,
                card=card,
                picture=picture,
            )
        except NoSuchThread:
            raise Closed(f"there is no thread {thread.thread}", "thread_not_found") from None
        return written.ref

    # --- reading ------------------------------------------------------------------------------------------

    async def find(self, thread: Thread, since: float) -> list[Found]:
        """Our messages in the thread."""
        where = "thread = ? AND kind = 'ours' AND sent_at >= ? AND NOT deleted"
        return [_found(one) for one in await self._channel.messages(where, thread.thread, since)]

    async def earlier_messages(self, thread: Thread, before: float) -> list[EarlierMessage]:
        """What others wrote before; the message that began the thread is always among them."""
        where = "thread = ? AND kind <> 'ours' AND sent_at < ? AND NOT deleted"
        found = await self._channel.messages(where, thread.thread, before)
        newest = found[-MOST_EARLIER:]
        if found and newest[0] is not found[0]:
            newest[0] = found[0]
        return [_earlier(one) for one in newest]

    async def author(self, workspace: str, user_id: str) -> Author:
        """The record of one of the cast."""
        return people.author(user_id)

    async def live_cards(self, since: float) -> list[tuple[Thread, Found]]:
        """Cards of ours that show as live."""
        where = "card IS NOT NULL AND sent_at >= ? AND NOT deleted"
        cards = await self._channel.messages(where, since)
        live = [one for one in cards if one.payload.get("state") == CardState.LIVE]
        return [(thread_of(one.thread), _found(one)) for one in live]

    def split(self, text: str) -> list[str]:
        """Parts of a length that can be read."""
        return parts.split(text, lambda part: len(part) <= MOST_CHARACTERS)

    async def close(self) -> None:
        """Close the channel's file."""
        await self._channel.close()


def _found(message: Message) -> Found:
    return Found(message.ref, message.event_type, message.payload)


def _earlier(message: Message) -> EarlierMessage:
    is_bot = message.kind is not Kind.PERSON
    return EarlierMessage(
        key=message_key(message.ref),
        author_id=message.author,
        author_name=message.author if is_bot else people.author(message.author).name,
        is_bot=is_bot,
        text=message.text,
        sent_at=message.sent_at,
    )

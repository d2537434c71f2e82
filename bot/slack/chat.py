"""The `Chat` port over Slack's Web API.

One card is written by one caller at a time; that is the caller's business: only it knows which state is
newer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from bot.errors import Closed, Gone, Permanent
from bot.ports import AboutToSend, Found, Post, at_once
from bot.slack.blocks import draw_card
from bot.slack.budget import Priority
from bot.slack.connect import Connection
from bot.slack.drawing import Drawing, Richness
from bot.slack.people import People
from bot.slack.posts import draw_chart, draw_post
from bot.slack.refusal_table import Kind, kind_of
from bot.slack.split import split
from bot.slack.text import Hosts, cut, to_mrkdwn
from bot.slack.threads import Threads
from bot.words.metadata import NOTE_EVENT
from core.arrivals import Author, EarlierMessage, Thread
from core.card import Card
from core.history import Json

log = structlog.get_logger()

# A workspace that refuses plans (an older or a government one) is asked again after so long.
PLAIN_FOR_S = 6 * 3_600.0
FORM_REFUSED = frozenset({"invalid_blocks", "invalid_blocks_format"})
FILE_READY_AFTER_S = (0.5, 1.0, 2.0, 4.0)
ALREADY_SO = {"reactions.add": "already_reacted", "reactions.remove": "no_reaction"}


class SlackChat:
    """Slack as people and we talk on it."""

    def __init__(self, connection: Connection, *, link_hosts: Hosts = frozenset()) -> None:
        self._connection, self._api, self._hosts = connection, connection.api, link_hosts
        self._people = People(self._api)
        self._threads = Threads(self._api, self._people)
        self._plain_until: dict[str, float] = {}
        self._metadata_in_private = True

    # --- writing ------------------------------------------------------------------------------------------

    async def card_slot(self, thread: Thread, ref: str | None, *, urgent: bool) -> None:
        """Wait for the budget of the method that will show the card."""
        method = "chat.postMessage" if ref is None else "chat.update"
        priority = Priority.URGENT if urgent else Priority.PROGRESS
        await self._api.turn(method, priority, thread.channel)

    async def show_card(self, thread: Thread, ref: str | None, card: Card) -> str:
        """Post or update the card, in the simplest form that Slack takes: rich, plain, words only."""
        richest = self._richest(thread.workspace)
        for richness in (form for form in Richness if form >= richest):
            try:
                shown = await self._show(thread, ref, draw_card(card, richness))
            except Permanent as refused:
                if kind_of(refused.code) is not Kind.FORM or richness is Richness.BARE:
                    raise
                log.warning("slack_refused_a_card", form=richness.name, error=str(refused))
                reason = refused.code
                await self.card_slot(thread, ref, urgent=True)
                continue
            if richness > richest and reason in FORM_REFUSED:
                self._plain_until[thread.workspace] = time.monotonic() + PLAIN_FOR_S
            return shown
        raise AssertionError("words are always tried")

    async def post(self, thread: Thread, post: Post, about_to_send: AboutToSend = at_once) -> str:
        """Post an answer, a note or a chart."""
        if post.chart is not None:
            return await self._post_chart(thread, post, post.chart, about_to_send)
        for richness in (Richness.RICH, Richness.TEXT, Richness.BARE):
            try:
                drawing = draw_post(post, self._hosts, richness)
                return await self._post(thread.channel, thread.thread, drawing, about_to_send)
            except Permanent as refused:
                if kind_of(refused.code) is not Kind.FORM or richness is Richness.BARE:
                    raise
                log.warning("slack_refused_a_post", kind=post.kind, form=richness.name, error=str(refused))
        raise AssertionError("words are always tried")

    async def tell_directly(
        self, thread: Thread, user_id: str, post: Post, about_to_send: AboutToSend = at_once
    ) -> str:
        """A person's id names the conversation with them; the right to post is enough for it."""
        return await self._post(user_id, None, draw_post(post, self._hosts), about_to_send)

    async def tell_privately(self, thread: Thread, user_id: str, text: str) -> None:
        """An ephemeral message. Slack documents no metadata for it: it goes without where that is refused."""
        told = {
            "channel": thread.channel,
            "user": user_id,
            "thread_ts": thread.thread,
            "text": cut(to_mrkdwn(text, self._hosts), 2_900, 4_400) or "…",
            "parse": "none",
            "link_names": False,
        }
        metadata = {"event_type": NOTE_EVENT, "event_payload": {"kind": "refusal"}}
        if self._metadata_in_private:
            try:
                await self._api.call("chat.postEphemeral", **told, metadata=metadata)
                return
            except Permanent as refused:
                if refused.code not in {
                    "invalid_arguments",
                    "invalid_metadata_format",
                    "metadata_not_allowed",
                }:
                    raise
                self._metadata_in_private = False
        await self._api.call("chat.postEphemeral", **told)

    async def set_receipt(self, thread: Thread, ref: str, receipt: str | None, previous: str | None) -> None:
        """The old one goes before the new one comes: never two of ours at a time."""
        if previous is not None and previous != receipt:
            await self._react("reactions.remove", thread, ref, previous)
        if receipt is not None:
            await self._react("reactions.add", thread, ref, receipt)

    async def delete(self, thread: Thread, ref: str) -> None:
        """Delete a message of ours."""
        try:
            await self._api.call("chat.delete", channel=thread.channel, ts=ref)
        except (Gone, Closed):
            return

    # --- reading ------------------------------------------------------------------------------------------

    async def find(self, thread: Thread, since: float) -> list[Found]:
        """Our messages in the thread."""
        return await self._threads.ours(thread, since, self._connection.us)

    async def earlier_messages(self, thread: Thread, before: float) -> list[EarlierMessage]:
        """What others wrote in the thread before."""
        return await self._threads.earlier(thread, before, self._connection.us)

    async def author(self, workspace: str, user_id: str) -> Author:
        """Slack's record of a person."""
        return await self._people.author(user_id, self._connection.us)

    async def live_cards(self, since: float) -> list[tuple[Thread, Found]]:
        """Cards of ours that show as live."""
        return await self._threads.live_cards(since, self._connection.us)

    def split(self, text: str) -> list[str]:
        """Parts that each fit one message."""
        return split(text, self._hosts)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    # --- how ------------------------------------------------------------------------------------------------

    def _richest(self, workspace: str) -> Richness:
        is_plain = time.monotonic() < self._plain_until.get(workspace, 0.0)
        return Richness.PLAIN if is_plain else Richness.RICH

    async def _show(self, thread: Thread, ref: str | None, drawing: Drawing) -> str:
        if ref is None:
            return await self._send_post(thread.channel, thread.thread, drawing)
        await self._api.send("chat.update", channel=thread.channel, ts=ref, **drawing.arguments())
        return ref

    async def _post(
        self, channel: str, thread_ts: str | None, drawing: Drawing, about_to_send: AboutToSend
    ) -> str:
        await self._api.turn("chat.postMessage", Priority.POST, channel)
        await about_to_send()
        return await self._send_post(channel, thread_ts, drawing)

    async def _send_post(self, channel: str, thread_ts: str | None, drawing: Drawing) -> str:
        """Previews are fetched with whatever the URL carries, so none are asked for."""
        answer = await self._api.send(
            "chat.postMessage",
            channel=channel,
            thread_ts=thread_ts,
            unfurl_links=False,
            unfurl_media=False,
            **drawing.arguments(),
        )
        return str(answer["ts"])

    async def _react(self, method: str, thread: Thread, ref: str, name: str) -> None:
        try:
            await self._api.call(method, channel=thread.channel, timestamp=ref, name=name)
        except Permanent as refused:
            if refused.code != ALREADY_SO[method]:
                raise

    async def _post_chart(
        self, thread: Thread, post: Post, picture: bytes, about_to_send: AboutToSend
    ) -> str:
        """A file shared with a channel carries no metadata, so the picture goes into a message of ours."""
        file_id = await self._upload(post, picture)
        drawing = draw_chart(post, file_id)

        async def show() -> str:
            return await self._post(thread.channel, thread.thread, drawing, about_to_send)

        return await _when_ready(show)

    async def _upload(self, post: Post, picture: bytes) -> str:
        place: dict[str, Json] = await self._api.call(
            "files.getUploadURLExternal", filename="chart.png", length=len(picture)
        )
        await self._api.upload(str(place["upload_url"]), picture)
        files = [{"id": place["file_id"], "title": post.text[:200] or "Chart"}]
        await self._api.call("files.completeUploadExternal", files=files)
        return str(place["file_id"])


async def _when_ready(show: Callable[[], Awaitable[str]]) -> str:
    """Slack refuses the block as invalid until it has digested the picture."""
    for pause in FILE_READY_AFTER_S:
        try:
            return await show()
        except Permanent as refused:
            if refused.code not in FORM_REFUSED:
                raise
        await asyncio.sleep(pause)
    return await show()

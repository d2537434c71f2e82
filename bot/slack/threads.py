"""Reading Slack: our messages in a thread, what others wrote before, and cards that still show as live."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import structlog

from bot.errors import Closed, Gone, Permanent
from bot.ports import Found
from bot.slack.api import SlackApi
from bot.slack.flatten import words_of
from bot.slack.identity import PLATFORM, Identity, message_key
from bot.slack.parse import author_of, is_bot, is_ours
from bot.slack.payload import identifier, record, timestamp, words
from bot.slack.people import People
from bot.words.metadata import CARD_EVENT
from core.arrivals import EarlierMessage, Thread
from core.card import CardState
from core.history import Json

log = structlog.get_logger()

PAGE = 200
MOST_EARLIER = 200
# A card may stand in a thread that began long before it; older roots than this are not looked into.
OLDEST_ROOT_S = 3 * 86_400.0
KINDS = "public_channel,private_channel"

Messages = list[dict[str, Json]]


class Threads:
    """What stands in the threads of one workspace."""

    def __init__(self, api: SlackApi, people: People) -> None:
        self._api, self._people = api, people
        self._complained: set[str] = set()

    async def ours(self, thread: Thread, since: float, us: Identity) -> list[Found]:
        """Our messages that say what they are, oldest first."""
        return _ours(await self._replies(thread.channel, thread.thread, since), since, us)

    async def earlier(self, thread: Thread, before: float, us: Identity) -> list[EarlierMessage]:
        """What others wrote; the root always stays, because the alert that began it all stands there."""
        latest = _moment(before)
        messages = await self._api.pages(
            "conversations.replies",
            "messages",
            channel=thread.channel,
            ts=thread.thread,
            latest=latest,
            limit=PAGE,
        )
        others = [m for m in messages if timestamp(m, "ts") and float(timestamp(m, "ts")) < before]
        others = [m for m in others if not is_ours(m, us) and words(m, "subtype") != "tombstone"]
        newest = deque(others, maxlen=MOST_EARLIER)
        if others and newest[0] is not others[0]:
            newest[0] = others[0]
        return [await self._earlier(thread, message, us) for message in newest]

    async def live_cards(self, since: float, us: Identity) -> list[tuple[Thread, Found]]:
        """As far as we may look: what is refused is left out, and said once in the log."""
        found: list[tuple[Thread, Found]] = []
        for channel in await self._channels():
            for root in await self._active_roots(channel, since):
                thread = Thread(PLATFORM, us.team, channel, root)
                for card in await self._ours_if_allowed(thread, since, us):
                    if card.event_type == CARD_EVENT and card.payload.get("state") == CardState.LIVE.value:
                        found.append((thread, card))
        return found

    async def _channels(self) -> list[str]:
        try:
            listed = await self._api.pages(
                "users.conversations", "channels", types=KINDS, exclude_archived=True, limit=PAGE
            )
        except Permanent as refused:
            self._complain(refused)
            return []
        return [channel for item in listed if (channel := identifier(item, "id"))]

    async def _active_roots(self, channel: str, since: float) -> list[str]:
        """Threads of a channel in which somebody wrote since then."""
        oldest = _moment(since - OLDEST_ROOT_S)
        try:
            messages = await self._api.pages(
                "conversations.history", "messages", channel=channel, oldest=oldest, limit=PAGE
            )
        except Permanent as refused:
            self._complain(refused)
            return []
        roots = [(timestamp(m, "thread_ts", "ts"), timestamp(m, "latest_reply")) for m in messages]
        return sorted({root for root, latest in roots if root and latest and float(latest) >= since})

    async def _ours_if_allowed(self, thread: Thread, since: float, us: Identity) -> list[Found]:
        try:
            return await self.ours(thread, since, us)
        except Permanent as refused:
            self._complain(refused)
            return []

    def _complain(self, refused: Permanent) -> None:
        if isinstance(refused, Gone | Closed) or refused.code in self._complained:
            return
        self._complained.add(refused.code)
        log.warning("slack_refuses_to_show_live_cards", error=str(refused))

    async def _replies(self, channel: str, root: str, since: float) -> Messages:
        return await self._api.pages(
            "conversations.replies",
            "messages",
            channel=channel,
            ts=root,
            oldest=_moment(since),
            inclusive=True,
            include_all_metadata=True,
            limit=PAGE,
        )

    async def _earlier(self, thread: Thread, message: dict[str, Json], us: Identity) -> EarlierMessage:
        ts, author = timestamp(message, "ts"), author_of(message)
        return EarlierMessage(
            key=message_key(thread.workspace, thread.channel, ts),
            author_id=author,
            author_name=await self._people.name(message, author, us),
            is_bot=is_bot(message),
            text=words_of(message),
            sent_at=float(ts),
        )


def _ours(messages: Iterable[dict[str, Json]], since: float, us: Identity) -> list[Found]:
    """The root comes along whatever `oldest` says."""
    found = []
    for message in messages:
        ts, event = timestamp(message, "ts"), words(record(message, "metadata"), "event_type")
        if ts and event and float(ts) >= since and is_ours(message, us):
            found.append(Found(ts, event, dict(record(message, "metadata", "event_payload"))))
    return sorted(found, key=lambda one: float(one.ref))


def _moment(seconds: float) -> str:
    return f"{max(0.0, seconds):.6f}"

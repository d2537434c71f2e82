"""Everything one server knows, and the changes that all of its parts share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tests.servers.slack.bell import Bell
from tests.servers.slack.calls import Call, Violation
from tests.servers.slack.clock import TsClock
from tests.servers.slack.delivery import Deliverer, Delivery, Form, Transport
from tests.servers.slack.envelopes import (
    changed_event,
    deleted_event,
    event_callback,
    mention_event,
    message_event,
)
from tests.servers.slack.faults import Faults
from tests.servers.slack.http_events import HttpEvents
from tests.servers.slack.limits import RateLimits
from tests.servers.slack.messages import Message
from tests.servers.slack.shapes import Json
from tests.servers.slack.sockets import SocketHub
from tests.servers.slack.workspace import BOT_USER, Channel, Workspace

SCOPE_NAMES = """
app_mentions:read channels:history channels:read chat:write files:read files:write groups:history
groups:read im:history im:read im:write reactions:read reactions:write team:read usergroups:read
users:read
"""
SCOPES = frozenset(SCOPE_NAMES.split())
SUBSCRIPTIONS = frozenset({"app_mention", "message.channels", "message.groups", "message.im"})
MESSAGE_EVENTS = {"channel": "message.channels", "group": "message.groups", "im": "message.im"}


class Mentions(Enum):
    """Which of a mention's two events arrive, and in which order."""

    MESSAGE_FIRST = "message, app_mention"
    MENTION_FIRST = "app_mention, message"
    MESSAGE_ONLY = "message"
    MENTION_ONLY = "app_mention"


@dataclass(frozen=True)
class Ephemeral:
    channel: str
    user: str
    text: str
    blocks: list[Json]
    thread_ts: str | None
    ts: str
    time: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Reacted:
    """One reaction set or taken away, in order."""

    channel: str
    ts: str
    user: str
    name: str
    added: bool
    time: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class File:
    id: str
    name: str
    length: int
    ticket: str
    title: str = ""
    user: str = BOT_USER
    content: bytes | None = None
    usable_at: float | None = None
    channels: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Uploaded, completed and digested."""
        return self.usable_at is not None and time.monotonic() >= self.usable_at

    @property
    def is_image(self) -> bool:
        return self.name.rpartition(".")[2].lower() in ("png", "jpg", "jpeg", "gif")

    @property
    def mimetype(self) -> str:
        kind = self.name.rpartition(".")[2].lower()
        return f"image/{'jpeg' if kind == 'jpg' else kind}" if self.is_image else "text/plain"


@dataclass(eq=False)
class ResponseUrl:
    """Where an interaction may be answered: five times within half an hour."""

    id: str
    message: Message
    user: str
    uses: list[Json] = field(default_factory=list)
    born: float = field(default_factory=time.monotonic)


class State:
    def __init__(
        self,
        *,
        rate_scale: float | None,
        retry_delays: Sequence[float],
        ack_timeout: float,
        signing_secret: str,
    ) -> None:
        self.url = ""
        self.clock = TsClock()
        self.bell = Bell()
        self.workspace = Workspace()
        self.faults = Faults()
        self.limits = RateLimits(rate_scale)
        self.sockets = SocketHub(self.bell, ack_timeout)
        self.http = HttpEvents(signing_secret, ack_timeout)
        self.events = Deliverer(self._transport, self.bell, retry_delays)
        self.scopes = set(SCOPES)
        self.subscriptions = set(SUBSCRIPTIONS)
        self.mentions = Mentions.MESSAGE_FIRST
        self.revoked: str | None = None
        self.edit_window_s: float | None = None
        self.messages_tab = True
        self.file_processing_s = 0.0
        self.calls: list[Call] = []
        self.violations: list[Violation] = []
        self.ephemerals: list[Ephemeral] = []
        self.reacted: list[Reacted] = []
        self.files: dict[str, File] = {}
        self.responses: dict[str, ResponseUrl] = {}
        self.emoji: set[str] = set()
        self._numbers = itertools.count(1)

    def number(self) -> int:
        return next(self._numbers)

    def _transport(self) -> Transport:
        return self.http if self.http.url else self.sockets

    def add(self, message: Message, channel: Channel, call: Call | None = None) -> Message:
        """Put a new message into its channel; the caller announces it."""
        root = channel.messages.get(message.thread_ts) if message.thread_ts else None
        if root is not None and root is not message:
            root.thread_ts = root.ts
            message.parent_user_id = root.user
        channel.messages[message.ts] = message
        message.remember(call)
        self.bell.ring()
        return message

    def announce(
        self, message: Message, channel: Channel, mentions: Mentions | None = None
    ) -> list[Delivery]:
        """Fire the events of a new message; one that names the bot has two."""
        plain = message_event(message, channel)
        if f"<@{BOT_USER}>" not in message.text:
            events = [plain]
        else:
            both = {"message": plain, "app_mention": mention_event(message, channel)}
            events = [both[name] for name in (mentions or self.mentions).value.split(", ")]
        sent = [self._emit(event, channel) for event in events]
        return [delivery for delivery in sent if delivery is not None]

    def mention_again(self, message: Message, channel: Channel) -> None:
        """An edit of a message that names the bot fires app_mention once more, with `edited`."""
        self._emit(mention_event(message, channel, self.clock.ts()), channel)

    def changed(self, message: Message, before: Json, channel: Channel, call: Call | None = None) -> None:
        """Remember and announce that a message shows something else now."""
        message.remember(call)
        self._emit(changed_event(message, before, channel, self.clock.ts()), channel)
        self.bell.ring()

    def deleted(self, message: Message, channel: Channel) -> None:
        message.deleted_at = time.monotonic()
        self._emit(deleted_event(message, channel, self.clock.ts()), channel)
        self.bell.ring()

    def _emit(self, event: Json, channel: Channel) -> Delivery | None:
        """Send an event if the app is there to hear it and has asked for it."""
        wanted = MESSAGE_EVENTS[channel.kind] if event["type"] == "message" else event["type"]
        if BOT_USER not in channel.members or wanted not in self.subscriptions:
            return None
        return self.events.emit(Form.EVENT, event_callback(event, channel))

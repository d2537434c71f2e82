"""What arrives from a platform, before anything is decided about it.

An arrival's `key` is the platform's own identity of the message, not of the event that carried it: one human
message arrives under several events and has one effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """What a message is."""

    MENTION = "mention"
    THREAD_REPLY = "thread_reply"
    STOP_REQUEST = "stop_request"
    ALERT = "alert"
    SCHEDULE = "schedule"
    SUBAGENT_REPORT = "subagent_report"
    SUBAGENT_QUESTION = "subagent_question"
    ANSWER = "answer"
    JOB = "job"
    NOTICE = "notice"


class AuthorRole(StrEnum):
    """Who wrote it, by the platform's own record of the author."""

    INITIATOR = "initiator"
    RESPONDER = "responder"
    MEMBER = "member"
    GUEST = "guest"
    EXTERNAL = "external"
    DEACTIVATED = "deactivated"
    BOT = "bot"
    SYSTEM = "system"


class Marker(StrEnum):
    """Whether the words ask to interrupt or to wait."""

    NOW = "now"
    LATER = "later"
    NONE = "none"


class Addressed(StrEnum):
    """Whom the words speak to."""

    BOT = "bot"
    PERSON = "person"
    NOBODY = "nobody"


PEOPLE_SOURCES = frozenset({Source.MENTION, Source.THREAD_REPLY, Source.STOP_REQUEST})


@dataclass(frozen=True, slots=True)
class Thread:
    """The address of a conversation."""

    platform: str
    workspace: str
    channel: str
    thread: str

    @property
    def conversation_id(self) -> str:
        """The conversation's id, the same on every process and after every restart."""
        return f"{self.platform}:{self.workspace}:{self.channel}:{self.thread}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that came in, as its platform adapter understood it.

    `message_ref` is where a receipt goes (the platform's id of the message, None for a button);
    `may_open` says whether it may found a conversation: else a message outside our threads is not stored;
    `inside_thread` says that the thread existed before, so that its earlier messages are worth reading;
    `author_is_bot` and `author_team` are hints from the event, the platform's record decides;
    `stops_turn` is the turn named by a Stop button, with `message_ref` then naming the card that bore it.
    """

    thread: Thread
    key: str
    source: Source
    author_id: str
    text: str
    marker: Marker = Marker.NONE
    addressed: Addressed = Addressed.NOBODY
    message_ref: str | None = None
    sent_at: float = 0.0
    may_open: bool = False
    inside_thread: bool = False
    author_is_bot: bool = False
    author_team: str | None = None
    stops_turn: str | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """The words of an earlier message were changed; `edit_key` identifies this very edit."""

    thread: Thread
    key: str
    edit_key: str
    text: str
    marker: Marker = Marker.NONE
    addressed: Addressed = Addressed.NOBODY


@dataclass(frozen=True, slots=True)
class Deletion:
    """An earlier message was deleted on the platform."""

    thread: Thread
    key: str


@dataclass(frozen=True, slots=True)
class EarlierMessage:
    """A message that stood in the thread before the conversation began.

    `text` includes attachments and blocks in words.
    """

    key: str
    author_id: str
    author_name: str
    is_bot: bool
    text: str
    sent_at: float


@dataclass(frozen=True, slots=True)
class Author:
    """The platform's own record of a person or bot."""

    id: str
    name: str
    is_bot: bool = False
    is_deactivated: bool = False
    is_guest: bool = False
    is_external: bool = False


def role_of(author: Author, *, initiator: str | None, responders: frozenset[str]) -> AuthorRole:
    """The role of an author in one conversation, least right first."""
    ladder = (
        (author.is_deactivated, AuthorRole.DEACTIVATED),
        (author.is_bot, AuthorRole.BOT),
        (author.is_external, AuthorRole.EXTERNAL),
        (author.is_guest, AuthorRole.GUEST),
        (author.id == initiator, AuthorRole.INITIATOR),
        (author.id in responders, AuthorRole.RESPONDER),
    )
    return next((role for holds, role in ladder if holds), AuthorRole.MEMBER)

"""Inbox messages once they are decided: what they are to the model, to their writer, and to the conversation.

Rule 1: a person's words reach the model verbatim, once, with the author's name beside them.
Rule 2: whoever wrote a message learns what became of it, on the message itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from core import prompt
from core.arrivals import PEOPLE_SOURCES, AuthorRole, Source
from core.history import Text
from core.policy import Effect

WISHES = frozenset({Effect.START, Effect.STEER, Effect.QUEUE})
"""The effects of a message that a turn must read."""


class Fate(StrEnum):
    """What became of a message. At rest none is `waiting`."""

    WAITING = "waiting"
    READ = "read"
    CONTEXT = "context"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    DENIED = "denied"


class Receipt(StrEnum):
    """Our one reaction on a person's message."""

    TAKEN = "eyes"
    QUEUED = "clock4"
    DONE = "white_check_mark"


RECEIPT: Mapping[Effect, Receipt | None] = {
    Effect.START: Receipt.TAKEN,
    Effect.STEER: Receipt.TAKEN,
    Effect.QUEUE: Receipt.QUEUED,
    Effect.STOP: Receipt.TAKEN,
    Effect.CONTEXT: None,
    Effect.DENY: None,
}

FATE: Mapping[Effect, Fate] = {
    Effect.START: Fate.WAITING,
    Effect.STEER: Fate.WAITING,
    Effect.QUEUE: Fate.WAITING,
    Effect.STOP: Fate.READ,
    Effect.CONTEXT: Fate.CONTEXT,
    Effect.DENY: Fate.DENIED,
}


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A decided message, as a turn takes it. `sent_at` is in seconds since the epoch."""

    seq: int
    source: Source
    role: AuthorRole
    author_name: str
    text: str
    effect: Effect
    sent_at: float


def shown(message: InboxMessage) -> Text:
    """The block in which the model sees the message."""
    at = datetime.fromtimestamp(message.sent_at, UTC).strftime("%H:%M:%SZ")
    if message.source is Source.NOTICE:
        return Text(prompt.notice(message.text))
    instructs = message.source in PEOPLE_SOURCES and message.effect in WISHES
    form = prompt.person_message if instructs else prompt.context_message
    return Text(form(message.author_name, message.role, at, message.text))


def goal_of(text: str, longest: int = 200) -> str:
    """The goal of an analysis in one line, from the words that started it."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"

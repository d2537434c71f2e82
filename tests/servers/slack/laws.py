"""What the app promises about its messages, checked over all that it ever showed.

1. Every message of the app bears `watchkeeper_*` metadata, whose values are never null.
2. For each turn the card reads live…, released, and never live again; a message that names a later
   turn has released the earlier one.
3. A released card says nothing is in progress and bears no Stop button.
4. Nobody is pinged by words that a model made up; posts don't unfurl.
5. At most one reaction of the app stands on a message at a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from tests.servers.slack.blocks import nested
from tests.servers.slack.inspection import Inspection
from tests.servers.slack.messages import Message, Version
from tests.servers.slack.shapes import Json
from tests.servers.slack.workspace import BOT_USER

CARD, ANSWER, NOTE = "watchkeeper_card", "watchkeeper_answer", "watchkeeper_note"
NEEDED = {
    CARD: ("turn_id", "state"),
    ANSWER: ("turn_id", "final_event_id", "part", "parts"),
    NOTE: ("kind",),
}
REASONS = frozenset(
    {
        "awaiting",
        "completed",
        "dispatched",
        "drained",
        "empty",
        "failed",
        "over_budget",
        "parked",
        "stale",
        "steered",
        "stopped",
    }
)
STOP = "watchkeeper_stop"
BROADCAST = re.compile(r"<!(?:channel|here|everyone|subteam)[^>]*>?")
MENTION = re.compile(r"<@[UW][A-Z0-9]*[^>]*>?")
PINGING_ELEMENTS = {"user": "user_id", "usergroup": "usergroup_id", "broadcast": "range"}


class Shown(NamedTuple):
    """One version of one message."""

    message: Message
    version: Version

    @property
    def event_type(self) -> str:
        return str((self.version.metadata or {}).get("event_type", ""))

    @property
    def payload(self) -> Json:
        payload: Json = (self.version.metadata or {}).get("event_payload", {})
        return payload

    def __str__(self) -> str:
        return f"{self.message.ts} ({self.event_type} {self.payload})"


class Laws(Inspection):
    def card_faults(self, *, allow_mentions: Collection[str] = ()) -> list[str]:
        """Every breach in words; `allow_mentions` are pings a test wants, such as `<@U0ANA00001>`."""
        shown = [Shown(m, v) for m in self.bot_messages() for v in m.versions]
        shown.sort(key=lambda s: s.version.time)
        return [
            *_metadata_faults(shown),
            *_state_faults([s for s in shown if s.event_type == CARD]),
            *_released_faults([s for s in shown if s.event_type == CARD]),
            *_ping_faults(shown, allow_mentions),
            *self._private_pings(allow_mentions),
            *self._unfurls(),
            *self._reaction_faults(),
        ]

    def live_cards(self) -> list[Message]:
        """Cards whose latest state is live."""
        return [m for m in self.of_type(CARD) if _payload(m).get("state") == "live"]

    def edits_after_release(self) -> list[str]:
        """Released cards edited again for the same turn though Slack's answer to the release arrived."""
        faults = []
        for message in self.bot_messages():
            for before, after in zip(message.versions, message.versions[1:], strict=False):
                was, now = Shown(message, before), Shown(message, after)
                released = was.event_type == CARD and was.payload.get("state") == "released"
                same = was.payload.get("turn_id") == now.payload.get("turn_id")
                if released and same and not (before.call and before.call.lost):
                    faults.append(f"{now}: edited again after its release")
        return faults

    def _private_pings(self, allowed: Collection[str]) -> Iterator[str]:
        for note in self.ephemerals:
            for ping in _pings(note.text, note.blocks, BROADCAST):
                if ping not in allowed:
                    yield f"ephemeral {note.ts}: pings {ping}"

    def _unfurls(self) -> Iterator[str]:
        for call in self.calls_of("chat.postMessage"):
            for name in ("unfurl_links", "unfurl_media"):
                if call.ok and str(call.args.get(name)).lower() not in ("0", "false"):
                    ts = call.result.get("ts") if call.result else None
                    yield f"{ts}: posted without {name}=false"

    def _reaction_faults(self) -> Iterator[str]:
        standing: dict[tuple[str, str], set[str]] = {}
        for done in self.reacted:
            if done.user != BOT_USER:
                continue
            names = standing.setdefault((done.channel, done.ts), set())
            if done.added and names:
                yield f"{done.ts}: reaction {done.name} set while {', '.join(sorted(names))} stands"
            (names.add if done.added else names.discard)(done.name)


def _payload(message: Message) -> Json:
    return Shown(message, message.versions[-1]).payload


def _metadata_faults(shown: list[Shown]) -> Iterator[str]:
    for one in shown:
        needed = NEEDED.get(one.event_type)
        if needed is None:
            yield f"{one}: no watchkeeper metadata"
            continue
        for name in needed:
            if name not in one.payload:
                yield f"{one}: no {name}"
        for name, value in one.payload.items():
            if not _sayable(value):
                yield f"{one}: {name} is neither string, number, boolean nor object"
        if one.event_type == CARD:
            yield from _card_payload_faults(one)


def _card_payload_faults(one: Shown) -> Iterator[str]:
    state, reason = one.payload.get("state"), one.payload.get("reason")
    if state not in ("live", "released"):
        yield f"{one}: state is neither live nor released"
    if state == "live" and "reason" in one.payload:
        yield f"{one}: a live card has no reason"
    if state == "released" and reason not in REASONS:
        yield f"{one}: a released card needs a settle reason"


def _sayable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_sayable(inner) for inner in value.values())
    return isinstance(value, (str, int, float, bool))


def _state_faults(cards: list[Shown]) -> Iterator[str]:
    over: set[str] = set()
    bearer: dict[str, str] = {}
    for card in cards:
        turn, state = str(card.payload.get("turn_id")), card.payload.get("state")
        if state == "live" and turn in over:
            yield f"{card}: live again"
        before = bearer.get(card.message.ts)
        if before is not None and before != turn:
            over.add(before)
        if state == "released":
            over.add(turn)
        bearer[card.message.ts] = turn


def _released_faults(cards: list[Shown]) -> Iterator[str]:
    for card in cards:
        if card.payload.get("state") != "released":
            continue
        for part in nested(card.version.blocks):
            if part.get("action_id") == STOP:
                yield f"{card}: released with a Stop button"
            if part.get("status") == "in_progress":
                yield f"{card}: released with a task in progress"


def _ping_faults(shown: list[Shown], allowed: Collection[str]) -> Iterator[str]:
    """Broadcasts anywhere, mentions of people and groups in answers."""
    for one in shown:
        patterns = [BROADCAST, MENTION] if one.event_type == ANSWER else [BROADCAST]
        for pattern in patterns:
            for ping in _pings(one.version.text, one.version.blocks, pattern):
                if ping not in allowed:
                    yield f"{one}: pings {ping}"
        if one.event_type == ANSWER:
            for part in nested(one.version.blocks):
                key = PINGING_ELEMENTS.get(str(part.get("type")))
                if key in part and f"<@{part[key]}>" not in allowed:
                    yield f"{one}: pings {part[key]}"


def _pings(text: str, blocks: list[Json], pattern: re.Pattern[str]) -> Iterator[str]:
    """Where Slack reads markup: the top text, mrkdwn objects and markdown blocks."""
    yield from (found.group() for found in pattern.finditer(text))
    for part in nested(blocks):
        if part.get("type") in ("mrkdwn", "markdown"):
            yield from (found.group() for found in pattern.finditer(str(part.get("text"))))

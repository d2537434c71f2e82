"""What an event of Slack means: an arrival, an edit, a deletion, or nothing. Pure; odd payloads are nothing.

Rule 1: the key of a message is (team, channel, ts), never the event's id. One message arrives as `message`
and as `app_mention`, in either order, sometimes twice (https://github.com/JJtmc1234/carl/issues/11), and a
mention with a file as `message` alone (https://github.com/slackapi/bolt-python/issues/925): always the same
arrival.
Rule 2: nothing of our own comes in.
"""

from __future__ import annotations

from bot.ports import Incoming
from bot.slack.clicks import stop_click
from bot.slack.identity import PLATFORM, Identity, message_key
from bot.slack.payload import Payload, identifier, record, records, timestamp, words
from bot.slack.speech import understood
from core.arrivals import Arrival, Deletion, Edit, Source, Thread

MESSAGES = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
SLACKS_OWN = frozenset({"USLACKBOT", "USLACK"})


def parse(body: Payload, us: Identity) -> Incoming | None:
    """Read the body of one event or interaction; None when it is nothing to us."""
    if body.get("type") == "block_actions":
        return stop_click(body, us)
    event = record(body, "event")
    if words(event, "type") not in {"message", "app_mention"}:
        return None
    team = team_of(body) or us.team
    channel = identifier(event, "channel")
    if not channel:
        return None
    subtype = words(event, "subtype")
    if subtype == "message_changed":
        return _changed(event, team, channel, us)
    if subtype == "message_deleted":
        return _deleted(record(event, "previous_message"), timestamp(event, "deleted_ts"), team, channel, us)
    return _written(event, team, channel, us) if subtype in MESSAGES else None


def team_of(body: Payload) -> str:
    """The workspace whose installation the event is for; in Slack Connect `team_id` may be another's."""
    first = next(iter(records(body, "authorizations")), {})
    return identifier(first, "team_id") or identifier(body, "team_id")


def _written(event: Payload, team: str, channel: str, us: Identity) -> Arrival | None:
    """A new message. An `app_mention` of an edited message comes a second time and is the edit's business."""
    ts = timestamp(event, "ts")
    author = author_of(event)
    if (
        not ts
        or not author
        or is_ours(event, us)
        or (event.get("type") == "app_mention" and "edited" in event)
    ):
        return None
    root = timestamp(event, "thread_ts") or ts
    speech = understood(event, us.user_id)
    inside = root != ts
    source = (
        Source.STOP_REQUEST
        if speech.asks_to_stop
        else Source.MENTION
        if speech.mentions_us
        else Source.THREAD_REPLY
    )
    if source is Source.THREAD_REPLY and not inside:
        return None
    return Arrival(
        thread=Thread(PLATFORM, team, channel, root),
        key=message_key(team, channel, ts),
        source=source,
        author_id=author,
        text=speech.text,
        marker=speech.marker,
        addressed=speech.addressed,
        message_ref=ts,
        sent_at=float(ts),
        may_open=source is Source.MENTION,
        inside_thread=inside,
        author_is_bot=is_bot(event),
        author_team=author_team(event),
    )


def _changed(event: Payload, team: str, channel: str, us: Identity) -> Edit | Deletion | None:
    """Only a person's new words count: unfurls and thread counters come as `message_changed` too."""
    message, before = record(event, "message"), record(event, "previous_message")
    ts = timestamp(message, "ts")
    if words(message, "subtype") == "tombstone":  # how Slack deletes the root of a thread with replies
        return _deleted(before or message, ts, team, channel, us)
    unchanged = words(message, "text") == words(before, "text") if before else "edited" not in message
    if not ts or unchanged or is_bot(message) or is_ours(message, us) or not author_of(message):
        return None
    speech = understood(message, us.user_id)
    key = message_key(team, channel, ts)
    edited = timestamp(record(message, "edited"), "ts") or timestamp(event, "event_ts", "ts")
    return Edit(
        thread=Thread(PLATFORM, team, channel, timestamp(message, "thread_ts") or ts),
        key=key,
        edit_key=f"{key}:edit:{edited}",
        text=speech.text,
        marker=speech.marker,
        addressed=speech.addressed,
    )


def _deleted(before: Payload, ts: str, team: str, channel: str, us: Identity) -> Deletion | None:
    if not ts or is_ours(before, us):
        return None
    root = timestamp(before, "thread_ts") or ts
    return Deletion(Thread(PLATFORM, team, channel, root), message_key(team, channel, ts))


def author_of(message: Payload) -> str:
    """The author's id; posts of bots often name no user."""
    return identifier(message, "user", "bot_id") or identifier(record(message, "bot_profile"), "id")


def is_bot(message: Payload) -> bool:
    """Whether the event says that no person typed this.

    What a person posts through another app carries that app's ids and counts as the app's. An `app_id` alone
    beside `client_msg_id`, which only Slack's own clients set, is a person.
    """
    return bool(
        message.get("bot_id")
        or message.get("bot_profile")
        or words(message, "subtype") == "bot_message"
        or (message.get("app_id") and not message.get("client_msg_id"))
        or author_of(message) in SLACKS_OWN
    )


def author_team(message: Payload) -> str | None:
    """The author's company as far as the event tells it, most telling field first.

    `source_team` is where the channel's message came in and may be another company's for a person of ours
    (https://github.com/paradigmxyz/centaur/pull/275), so it stands behind the author's own fields.
    """
    own = identifier(message, "user_team") or identifier(record(message, "user_profile"), "team")
    return own or identifier(message, "source_team", "team") or None


def is_ours(message: Payload, us: Identity) -> bool:
    """Whether we wrote it."""
    app = identifier(message, "app_id") or identifier(record(message, "bot_profile"), "app_id")
    return us.wrote(user=identifier(message, "user"), bot_id=identifier(message, "bot_id"), app_id=app)

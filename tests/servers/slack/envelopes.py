"""The outer shape of what Slack sends to an app."""

from __future__ import annotations

import itertools
import time

from tests.servers.slack.messages import Message
from tests.servers.slack.shapes import Json
from tests.servers.slack.workspace import APP, BOT_USER, TEAM, Channel, User

VERIFICATION_TOKEN = "legacy-verification-token"
_numbers = itertools.count(1)


def event_callback(event: Json, channel: Channel) -> Json:
    number = next(_numbers)
    authorization = {
        "enterprise_id": None,
        "team_id": TEAM,
        "user_id": BOT_USER,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM,
        "context_team_id": TEAM,
        "context_enterprise_id": None,
        "api_app_id": APP,
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{number:09d}",
        "event_time": int(time.time()),
        "authorizations": [authorization],
        "is_ext_shared_channel": channel.ext_shared,
        "event_context": f"4-{number:09d}",
    }


def message_event(message: Message, channel: Channel) -> Json:
    return {**message.json(), "channel": channel.id, "event_ts": message.ts, "channel_type": channel.kind}


def mention_event(message: Message, channel: Channel, event_ts: str | None = None) -> Json:
    """The other event of a message that names the bot; it bears no subtype and no channel_type."""
    event = {k: v for k, v in message.json().items() if k not in ("subtype", "reactions")}
    return {**event, "type": "app_mention", "channel": channel.id, "event_ts": event_ts or message.ts}


def changed_event(message: Message, before: Json, channel: Channel, event_ts: str) -> Json:
    return {
        "type": "message",
        "subtype": "message_changed",
        "message": message.json(),
        "previous_message": before,
        "channel": channel.id,
        "hidden": True,
        "ts": event_ts,
        "event_ts": event_ts,
        "channel_type": channel.kind,
    }


def deleted_event(message: Message, channel: Channel, event_ts: str) -> Json:
    return {
        "type": "message",
        "subtype": "message_deleted",
        "previous_message": message.json(),
        "channel": channel.id,
        "hidden": True,
        "deleted_ts": message.ts,
        "ts": event_ts,
        "event_ts": event_ts,
        "channel_type": channel.kind,
    }


def block_actions(message: Message, channel: Channel, user: User, action: Json, response_url: str) -> Json:
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": False,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    return {
        "type": "block_actions",
        "user": {
            "id": user.id,
            "username": user.name.lower(),
            "name": user.name.lower(),
            "team_id": user.team_id,
        },
        "api_app_id": APP,
        "token": VERIFICATION_TOKEN,
        "container": container,
        "trigger_id": f"{next(_numbers)}.{int(time.time())}.trigger",
        "team": {"id": TEAM, "domain": "watch"},
        "enterprise": None,
        "is_enterprise_install": False,
        "channel": {"id": channel.id, "name": channel.name},
        "message": message.json(),
        "state": {"values": {}},
        "response_url": response_url,
        "actions": [action],
    }

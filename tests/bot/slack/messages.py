"""Payloads in the shapes that Slack sends, built for the tests of this folder."""

from __future__ import annotations

from typing import Any

from bot.slack.identity import Identity

US = Identity(team="T1", user_id="UBOT", bot_id="BBOT", app_id="ABOT")
CHANNEL, ROOT, TS = "C1", "1700000000.000100", "1700000005.000200"


def envelope(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    authorizations = [{"team_id": "T1", "enterprise_id": None, "user_id": "UBOT", "is_bot": True}]
    return {
        "type": "event_callback",
        "team_id": "T1",
        "event": event,
        "authorizations": authorizations,
    } | more


def message(text: str = "", **more: Any) -> dict[str, Any]:
    """What a person typed at the top of a channel; None takes a field away."""
    event = {"type": "message", "channel": CHANNEL, "user": "UANA", "team": "T1", "ts": TS, "text": text}
    event |= {"client_msg_id": "c-1", "event_ts": TS, "channel_type": "channel"} | more
    return envelope({name: value for name, value in event.items() if value is not None})


def rich(*elements: dict[str, Any], kind: str = "rich_text_section") -> list[dict[str, Any]]:
    return [{"type": "rich_text", "elements": [{"type": kind, "elements": list(elements)}]}]


def changed(before: str, after: str, **more: Any) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "message", "user": "UANA", "ts": TS, "thread_ts": ROOT, "text": after}
    inner |= {"edited": {"user": "UANA", "ts": "1700000009.000000"}, "client_msg_id": "c-1"} | more
    return envelope(
        {
            "type": "message",
            "subtype": "message_changed",
            "channel": CHANNEL,
            "ts": "1700000009.000100",
            "event_ts": "1700000009.000100",
            "message": inner,
            "previous_message": inner | {"text": before},
        }
    )


def click(**more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "UANA", "team_id": "T1"},
        "container": {"type": "message", "message_ts": TS, "channel_id": CHANNEL, "thread_ts": ROOT},
        "channel": {"id": CHANNEL},
        "message": {"ts": TS, "thread_ts": ROOT},
        "actions": [{"action_id": "watchkeeper_stop", "value": "turn-1", "action_ts": "1700000007.000300"}],
    }
    return body | more

"""The manifest asks for exactly what the adapter uses."""

from __future__ import annotations

import re
from pathlib import Path

from bot.slack.manifest import manifest
from bot.slack.methods import METHODS
from tests.servers.slack.methods import METHODS as SLACKS

SOURCES = Path(__file__).resolve().parents[3] / "bot" / "slack"
CALLED = re.compile(r'"((?:auth|bots|chat|conversations|files|reactions|users|usergroups|views)\.[A-Za-z]+)"')


def called() -> set[str]:
    texts = (path.read_text() for path in SOURCES.glob("*.py") if path.name != "methods.py")
    return {name for text in texts for name in CALLED.findall(text)}


def test_every_method_of_the_table_is_called_and_no_other() -> None:
    assert called() == set(METHODS)


def test_the_scopes_are_those_of_the_methods_and_events() -> None:
    asked = set(manifest()["oauth_config"]["scopes"]["bot"])
    needed = {scope for name in called() if (scope := SLACKS[name].scope)}
    assert needed <= asked
    assert asked == {
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "files:write",
        "groups:history",
        "groups:read",
        "reactions:write",
        "users:read",
    }


def test_events_come_over_socket_mode_unless_an_address_is_given() -> None:
    settings = manifest()["settings"]
    assert settings["socket_mode_enabled"]
    assert settings["interactivity"] == {"is_enabled": True}
    assert settings["event_subscriptions"] == {
        "bot_events": ["app_mention", "message.channels", "message.groups"]
    }


def test_over_http_events_and_presses_go_to_the_address() -> None:
    settings = manifest("https://bot.corp/slack/events")["settings"]
    assert not settings["socket_mode_enabled"]
    assert settings["event_subscriptions"]["request_url"] == "https://bot.corp/slack/events"
    assert settings["interactivity"]["request_url"] == "https://bot.corp/slack/events"

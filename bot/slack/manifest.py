"""The Slack app manifest: exactly the scopes and events that the adapter uses.

Form: https://docs.slack.dev/reference/app-manifest/
"""

from __future__ import annotations

from bot.slack.methods import EVENTS, scopes
from core.history import Json


def manifest(http_url: str | None = None) -> dict[str, Json]:
    """For Socket Mode, or, given the public address of `/slack/events`, for HTTP."""
    over_http: dict[str, Json] = {} if http_url is None else {"request_url": http_url}
    return {
        "_metadata": {"major_version": 2},
        "display_information": {
            "name": "Watchkeeper",
            "description": "Investigates incidents in the thread, and listens while it works",
        },
        "features": {"bot_user": {"display_name": "watchkeeper", "always_online": True}},
        "oauth_config": {"scopes": {"bot": sorted(scopes())}},
        "settings": {
            "event_subscriptions": {"bot_events": sorted(EVENTS), **over_http},
            "interactivity": {"is_enabled": True, **over_http},
            "org_deploy_enabled": False,
            "socket_mode_enabled": http_url is None,
            "token_rotation_enabled": False,
        },
    }

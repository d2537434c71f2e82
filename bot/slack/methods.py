"""The Web API methods that we use: one table from which scopes, budgets and the form of the call are read.

Scopes and tiers: docs.slack.dev/reference/methods (one page each), docs.slack.dev/apis/web-api/rate-limits
A tier is a floor ("50+ a minute") per method, workspace and app; we stay a little below it, because a minute
of ours and a minute of Slack's are not the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Form(Enum):
    """How the arguments travel, as Slack's own client sends them."""

    JSON = "json"
    QUERY = "query"
    GET = "get"


@dataclass(frozen=True, slots=True)
class Method:
    """`creates` means that people would see a repeat after a lost answer."""

    form: Form
    per_minute: int
    scopes: tuple[str, ...] = ()
    per_channel: bool = False
    creates: bool = False


TIER_1, TIER_2, TIER_3, TIER_4 = 1, 19, 48, 96
READ_CHANNELS = ("channels:read", "groups:read")
READ_MESSAGES = ("channels:history", "groups:history")

METHODS: Mapping[str, Method] = {
    "auth.test": Method(Form.QUERY, TIER_4),
    "bots.info": Method(Form.GET, TIER_3, ("users:read",)),
    # About one message a second and channel, and an unpublished limit for the workspace: see budget.py.
    "chat.postMessage": Method(Form.JSON, TIER_4, ("chat:write",), per_channel=True, creates=True),
    "chat.postEphemeral": Method(Form.JSON, TIER_4, ("chat:write",), creates=True),
    "chat.update": Method(Form.JSON, TIER_3, ("chat:write",)),
    "chat.delete": Method(Form.QUERY, TIER_3, ("chat:write",)),
    "conversations.history": Method(Form.GET, TIER_3, READ_MESSAGES),
    "conversations.replies": Method(Form.GET, TIER_3, READ_MESSAGES),
    "files.getUploadURLExternal": Method(Form.QUERY, TIER_4, ("files:write",)),
    "files.completeUploadExternal": Method(Form.QUERY, TIER_4, ("files:write",)),
    "reactions.add": Method(Form.QUERY, TIER_3, ("reactions:write",)),
    "reactions.remove": Method(Form.QUERY, TIER_2, ("reactions:write",)),
    "users.conversations": Method(Form.GET, TIER_3, READ_CHANNELS),
    "users.info": Method(Form.GET, TIER_4, ("users:read",)),
}  # fmt: skip

EVENTS: Mapping[str, tuple[str, ...]] = {
    "app_mention": ("app_mentions:read",),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
}


def scopes() -> frozenset[str]:
    """Every scope that the bot needs, and no other."""
    needed = [method.scopes for method in METHODS.values()] + list(EVENTS.values())
    return frozenset(scope for group in needed for scope in group)

"""The Web API, one table: method → what it does, the scope it needs, the kind of token.

A method is a plain function of the state, the call and its arguments; it answers or raises Refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.methods import apps, chat, conversations, files, reactions, users
from tests.servers.slack.shapes import Json
from tests.servers.slack.state import State

Run = Callable[[State, Call, Args], Json]


class Method(NamedTuple):
    run: Run
    scope: str | None = None
    token: str = "xoxb"


HISTORY, READ = "channels:history", "channels:read"

METHODS: Mapping[str, Method] = {
    "api.test": Method(apps.api_test),
    "apps.connections.open": Method(apps.connections_open, token="xapp"),
    "auth.test": Method(apps.auth_test),
    "bots.info": Method(users.bots_info, "users:read"),
    "chat.delete": Method(chat.delete, "chat:write"),
    "chat.getPermalink": Method(chat.permalink),
    "chat.postEphemeral": Method(chat.post_ephemeral, "chat:write"),
    "chat.postMessage": Method(chat.post, "chat:write"),
    "chat.update": Method(chat.update, "chat:write"),
    "conversations.history": Method(conversations.history, HISTORY),
    "conversations.info": Method(conversations.info, READ),
    "conversations.list": Method(conversations.everything, READ),
    "conversations.members": Method(conversations.members, READ),
    "conversations.open": Method(conversations.open_dm, "im:write"),
    "conversations.replies": Method(conversations.replies, HISTORY),
    "files.completeUploadExternal": Method(files.complete, "files:write"),
    "files.getUploadURLExternal": Method(files.upload_url, "files:write"),
    "files.info": Method(files.info, "files:read"),
    "reactions.add": Method(reactions.add, "reactions:write"),
    "reactions.get": Method(reactions.get, "reactions:read"),
    "reactions.remove": Method(reactions.remove, "reactions:write"),
    "team.info": Method(apps.team_info, "team:read"),
    "usergroups.users.list": Method(users.group_members, "usergroups:read"),
    "users.conversations": Method(conversations.mine, READ),
    "users.info": Method(users.info, "users:read"),
}

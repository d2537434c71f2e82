"""People, bots and user groups."""

from __future__ import annotations

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import State


def info(state: State, call: Call, args: Args) -> Json:
    user = state.workspace.users.get(args.need("user", "user_not_found"))
    if user is None:
        raise Refused("user_not_found")
    return {"user": user.json()}


def bots_info(state: State, call: Call, args: Args) -> Json:
    asked = args.need("bot", "bot_not_found")
    for user in state.workspace.users.values():
        if user.bot_id == asked:
            bot = {"id": asked, "app_id": user.app_id, "name": user.name, "user_id": user.id}
            return {"bot": bot | {"deleted": user.deleted, "updated": 1764500000, "icons": {}}}
    raise Refused("bot_not_found")


def group_members(state: State, call: Call, args: Args) -> Json:
    group = state.workspace.usergroups.get(args.need("usergroup", "no_such_subteam"))
    if group is None:
        raise Refused("no_such_subteam")
    return {"users": list(group)}

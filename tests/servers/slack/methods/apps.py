"""Who am I, where do events come from."""

from __future__ import annotations

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import State
from tests.servers.slack.workspace import APP, BOT, BOT_USER, TEAM

TEAM_NAME = "Watch"


def api_test(state: State, call: Call, args: Args) -> Json:
    if error := args.text("error"):
        raise Refused(error, args=args.raw)
    return {"args": args.raw}


def auth_test(state: State, call: Call, args: Args) -> Json:
    return {
        "url": "https://watch.slack.com/",
        "team": TEAM_NAME,
        "user": state.workspace.users[BOT_USER].name,
        "team_id": TEAM,
        "user_id": BOT_USER,
        "bot_id": BOT,
        "is_enterprise_install": False,
    }


def connections_open(state: State, call: Call, args: Args) -> Json:
    address = state.url.replace("http://", "ws://", 1)
    return {"url": f"{address}/link/?ticket={state.sockets.ticket()}&app_id={APP}"}


def team_info(state: State, call: Call, args: Args) -> Json:
    return {"team": {"id": TEAM, "name": TEAM_NAME, "domain": "watch", "email_domain": "watch.example"}}

"""Channels, their history and their threads."""

from __future__ import annotations

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.clock import is_ts
from tests.servers.slack.messages import Message
from tests.servers.slack.methods.pages import page
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import State
from tests.servers.slack.workspace import BOT_USER, Channel


def info(state: State, call: Call, args: Args) -> Json:
    return {"channel": state.workspace.visible_channel(args.need("channel", "channel_not_found")).json()}


def everything(state: State, call: Call, args: Args) -> Json:
    return _listed(state, args, only_mine=False)


def mine(state: State, call: Call, args: Args) -> Json:
    return _listed(state, args, only_mine=True)


def members(state: State, call: Call, args: Args) -> Json:
    channel = state.workspace.visible_channel(args.need("channel", "channel_not_found"))
    shown, after = page(sorted(channel.members), args, 100)
    return {"members": shown, "response_metadata": after}


def open_dm(state: State, call: Call, args: Args) -> Json:
    users = args.need("users", "users_list_not_supplied").split(",")
    if len(users) != 1 or users[0] not in state.workspace.users:
        raise Refused("user_not_found")
    if state.workspace.users[users[0]].deleted:
        raise Refused("user_disabled")
    return {"channel": {"id": state.workspace.dm(users[0]).id}}


def history(state: State, call: Call, args: Args) -> Json:
    channel = _readable(state, args)
    shown = [m for m in channel.shown() if not m.is_reply or m.subtype == "thread_broadcast"]
    found, after = page(_between(shown, args)[::-1], args, 100, 999)
    return _page_of(channel, found, after, args)


def replies(state: State, call: Call, args: Args) -> Json:
    """Oldest first; the root comes first whatever `oldest` and `latest` say."""
    channel = _readable(state, args)
    named = channel.messages.get(args.need("ts", "thread_not_found"))
    if named is None or named.deleted:
        raise Refused("thread_not_found")
    thread = channel.thread(named.thread_ts or named.ts)
    roots = [m for m in thread if not m.is_reply]
    rest = _between([m for m in thread if m.is_reply], args)
    found, after = page(roots + rest, args, 1000)
    return _page_of(channel, found, after, args)


def _listed(state: State, args: Args, *, only_mine: bool) -> Json:
    kinds = {
        "public_channel": "channel",
        "private_channel": "group",
        "im": "im",
        "mpim": "mpim",
    }
    asked = {kinds.get(kind.strip(), "") for kind in (args.text("types") or "public_channel").split(",")}
    if "" in asked:
        raise Refused("invalid_types")
    found = [
        channel.json()
        for channel in state.workspace.channels.values()
        if channel.kind in asked
        and (BOT_USER in channel.members or not (only_mine or channel.private))
        and not (channel.archived and args.flag("exclude_archived"))
    ]
    shown, after = page(found, args, 100)
    return {"channels": shown, "response_metadata": after}


def _readable(state: State, args: Args) -> Channel:
    channel = state.workspace.visible_channel(args.need("channel", "channel_not_found"))
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    return channel


def _between(messages: list[Message], args: Args) -> list[Message]:
    oldest, latest, inclusive = args.text("oldest"), args.text("latest"), args.flag("inclusive")
    for name, bound in (("oldest", oldest), ("latest", latest)):
        if bound and not is_ts(bound) and not bound.isdigit():
            raise Refused(f"invalid_ts_{name}")

    def within(ts: str) -> bool:
        if inclusive and ts in (oldest, latest):
            return True
        after = not oldest or float(ts) > float(oldest)
        return after and (not latest or float(ts) < float(latest))

    return [m for m in messages if within(m.ts)]


def _page_of(channel: Channel, found: list[Message], after: Json, args: Args) -> Json:
    with_metadata = args.flag("include_all_metadata")
    return {
        "messages": [with_counters(m, channel, metadata=with_metadata) for m in found],
        "has_more": bool(after["next_cursor"]),
        "response_metadata": after,
    }


def with_counters(message: Message, channel: Channel, *, metadata: bool) -> Json:
    """A root also tells how many replies it has and by whom."""
    shown = message.json(metadata=metadata)
    answers = [m for m in channel.thread(message.ts) if m is not message]
    if answers:
        users = list(dict.fromkeys(m.user for m in answers if m.user))
        shown |= {
            "thread_ts": message.ts,
            "reply_count": len(answers),
            "reply_users": users,
            "reply_users_count": len(users),
            "latest_reply": answers[-1].ts,
            "is_locked": message.ts in channel.locked_threads,
            "subscribed": False,
        }
    return shown

"""Reactions of the bot."""

from __future__ import annotations

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.clock import is_ts
from tests.servers.slack.messages import Message
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import Reacted, State
from tests.servers.slack.workspace import BOT_USER, Channel

MOST_BY_ONE = 23
MOST_EMOJI = 50
NAMES = """
+1 -1 thumbsup thumbsdown eyes clock1 clock2 clock3 clock4 clock5 clock9 clock12 white_check_mark
heavy_check_mark ballot_box_with_check x heavy_multiplication_x no_entry no_entry_sign
octagonal_sign stop_sign stop_button double_vertical_bar warning rotating_light fire boom hourglass
hourglass_flowing_sand stopwatch alarm_clock mag mag_right robot_face speech_balloon thought_balloon
wave tada rocket bug question grey_question exclamation bell no_bell lock unlock key memo pencil
pushpin link recycle repeat arrows_counterclockwise zzz see_no_evil raised_hand ok ok_hand pray clap
100 red_circle large_green_circle large_yellow_circle large_blue_circle black_circle white_circle
one two three four five six seven eight nine keycap_ten chart_with_upwards_trend bar_chart gear
wrench hammer hammer_and_wrench ambulance construction heart
"""
EMOJI = frozenset(NAMES.split())


def add(state: State, call: Call, args: Args) -> Json:
    name = args.need("name", "invalid_name").strip(":")
    message, channel = _reactable(state, args)
    if name.split("::")[0] not in EMOJI | state.emoji:
        raise Refused("invalid_name")
    if channel.archived:
        raise Refused("is_archived")
    if (message.thread_ts or message.ts) in channel.locked_threads:
        raise Refused("thread_locked")
    if BOT_USER in message.reactions.get(name, []):
        raise Refused("already_reacted")
    if sum(BOT_USER in users for users in message.reactions.values()) >= MOST_BY_ONE:
        raise Refused("too_many_reactions")
    if name not in message.reactions and len(message.reactions) >= MOST_EMOJI:
        raise Refused("too_many_emoji")
    message.reactions.setdefault(name, []).append(BOT_USER)
    _record(state, message, name, added=True)
    return {}


def remove(state: State, call: Call, args: Args) -> Json:
    name = args.need("name", "invalid_name").strip(":")
    message, _ = _reactable(state, args)
    users = message.reactions.get(name, [])
    if BOT_USER not in users:
        raise Refused("no_reaction")
    users.remove(BOT_USER)
    if not users:
        del message.reactions[name]
    _record(state, message, name, added=False)
    return {}


def get(state: State, call: Call, args: Args) -> Json:
    message, channel = _reactable(state, args)
    return {"type": "message", "channel": channel.id, "message": message.json()}


def _reactable(state: State, args: Args) -> tuple[Message, Channel]:
    channel = state.workspace.visible_channel(args.need("channel", "no_item_specified"))
    ts = args.need("timestamp", "no_item_specified")
    if not is_ts(ts):
        raise Refused("bad_timestamp")
    message = channel.messages.get(ts)
    if message is None or message.deleted:
        raise Refused("message_not_found")
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    return message, channel


def _record(state: State, message: Message, name: str, *, added: bool) -> None:
    state.reacted.append(Reacted(message.channel, message.ts, BOT_USER, name, added))
    state.bell.ring()

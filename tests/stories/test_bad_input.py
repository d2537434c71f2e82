"""Whatever comes in, from people, tools or Slack itself: bounded, acknowledged, and no stuck turn."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import reply
from tests.servers.slack.delivery import Form
from tests.servers.slack.envelopes import event_callback
from tests.servers.slack.workspace import User
from tests.stories.looking import known_threads, told
from tests.stories.room import Room
from tests.stories.telling import ask, messages, must_be_well, quiet, reply_to, story

ODD = "nul:\x00 bell:\x07 escape:\x1b[31m half:\ud800 other half:\udc00 c1:\x9b end"


async def test_a_message_of_forty_thousand_characters_is_read_and_answered(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("a long one")))
        await ask(room, "why? " + "x" * 39_990)
        await room.until_settled("completed")
        assert len(room.model.last_request.raw) < 120_000
        assert told(room, "x" * 30_000) == 1


@pytest.mark.parametrize("socket_mode", [True, False], ids=["socket", "http"])
async def test_control_characters_and_halves_of_letters_stop_nothing(
    tmp_path: Path, socket_mode: bool
) -> None:
    async with story(tmp_path, socket_mode=socket_mode) as room:
        room.slack.add_user(User("U0ODD00001", "Odd\x00\ud83d<!channel>"), "#inc")
        room.model.script(
            reply(text("I look"), call("probe__fast", {"text": "a\x00b\x1b"}), call("probe__weird", {})),
            reply(text("odd \x00 and \x1b[31m red \u202e but fine [c1] [c2]")),
            reply(text("again")),
        )
        ts = await ask(room, ODD, who="U0ODD00001")
        await room.until_settled("completed")
        await room.slack.edit(ts, f"{ODD} edited", mention=True)
        await reply_to(room, ts, ODD, who="U0ODD00001")
        await room.until_settled("completed", "completed")
        odd = [sign for request in room.model.requests for sign in odd_signs(request)]
        assert odd == []
        assert all(delivery.acked for delivery in room.slack.deliveries)


def odd_signs(request: ModelRequest) -> list[str]:
    """Texts of the user's side that hold what neither a terminal nor a database takes."""
    said = [*request.user_texts(), *(result.text for result in request.tool_results().values())]
    return [one for one in said if re.search("[\x00-\x08\x1b\x9b\ud800-\udfff]", one)]


async def test_a_result_of_megabytes_is_cut_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(call("probe__big", {"bytes": 5_000_000}), call("probe__fast", {"text": "b"})),
            reply(text("it is big [c1]")),
        )
        await ask(room)
        await room.until_settled("completed")
        assert len(room.model.last_request.raw) < 300_000
        assert sum(path.stat().st_size for path in tmp_path.glob("watchkeeper.db*")) < 5_000_000


MALFORMED: list[object] = [
    {"type": "message"},
    {"type": "message", "ts": None, "user": None, "text": None},
    {"type": "message", "ts": "x", "channel": "C0INC00001", "user": "U0ANA00001", "text": "<@U0WATCHBOT> a"},
    {"type": "message", "ts": ["1"], "channel": {}, "user": 7, "text": {"a": 1}},
    {"type": "app_mention", "ts": "1.1", "channel": "C0INC00001", "text": "<@U0WATCHBOT> who am I"},
    {"type": "message", "subtype": "message_changed", "channel": "C0INC00001"},
    {"type": "message", "subtype": "message_changed", "channel": "C0INC00001", "message": "text"},
    {"type": "message", "subtype": "message_deleted", "channel": "C0INC00001", "deleted_ts": 5},
    {"type": "message", "subtype": "channel_topic", "channel": "C0INC00001", "ts": "1.2", "topic": "x"},
    {"type": "message", "subtype": "not_known_yet", "channel": "C0INC00001", "ts": "1.3", "text": "x"},
    {"type": "reaction_added", "user": "U0ANA00001", "reaction": "eyes", "item": {}},
    {"type": "a_type_of_tomorrow", "blocks": [[[[]]]]},
    {"type": ["message"]},
    {"type": "message", "message": 7, "item": 7, "team": 7},
    {},
    "event",
    None,
    7,
]


@pytest.mark.parametrize("socket_mode", [True, False], ids=["socket", "http"])
async def test_malformed_and_unknown_events_are_acknowledged_and_start_nothing(
    tmp_path: Path, socket_mode: bool
) -> None:
    async with story(tmp_path, socket_mode=socket_mode, slack={"retry_delays": ()}) as room:
        channel = room.slack.workspace.channel("#inc")
        for event in MALFORMED:
            body = {**event_callback({}, channel), "event": event}
            room.slack.state.events.emit(Form.EVENT, body)
        for action in (
            {},
            {"action_id": "watchkeeper_stop"},
            {"action_id": "watchkeeper_stop", "value": 5},
            "x",
            None,
        ):
            body = {"type": "block_actions", "actions": [action], "user": None, "container": 4, "channel": []}
            room.slack.state.events.emit(Form.INTERACTION, body)
        room.slack.state.events.emit(
            Form.INTERACTION, {"type": "view_submission", "user": {"id": "U0ANA00001"}}
        )
        await room.slack.events_settled(15)
        missed = [d.body.get("event", d.body) for d in room.slack.deliveries if not d.acked]
        assert missed == []
        assert await known_threads(room) == []
        room.model.script(reply(text("still here")))
        await ask(room)
        await room.until_settled("completed")


# --- tools ----------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_tool_server_that_dies_or_hangs_costs_an_error_and_never_the_turn(tmp_path: Path) -> None:
    more = '\n[tools."probe__hang"]\ntimeout_s = 0.5\n'
    async with story(tmp_path, more=more, own_probe=True) as room:
        room.model.script(
            reply(call("probe__hang", {}), call("probe__fast", {"text": "b"})),
            reply(call("probe__die", {}), call("probe__slow", {"seconds": 5, "text": "late"})),
            reply(
                call("probe__fast", {"text": "again"}),
                call("probe__none", {}),
                call("probe__fail", {"message": "no"}),
            ),
            reply(text("it is the deploy")),
        )
        await ask(room)
        await room.until_settled("completed")
        told_first = list(room.model.requests[1].tool_results().values())
        assert "no answer within" in told_first[0].text
        told_last = list(room.model.last_request.tool_results().values())
        assert [one.is_error for one in told_last] == [True, False, True, True, False, True, True]
        assert "again" in told_last[4].text
        [up, *_] = room.tool_events("up")
        assert len(room.tool_events("up")) == 2, up


@pytest.mark.slow
async def test_a_tool_server_that_never_connects_delays_the_first_request_only_to_its_limit(
    tmp_path: Path,
) -> None:
    dead = json.dumps([sys.executable, "-c", "import time; time.sleep(1000)"])
    more = f'\n[[mcp]]\nname = "dead"\ncommand = {dead}\ntimeout_s = 1.5\n'
    more += '\n[[mcp]]\nname = "absent"\ncommand = ["/no/such/program"]\ntimeout_s = 1\n'
    async with story(tmp_path, more=more) as room:
        room.model.reply_always("it is the deploy")
        ts = await ask(room)
        await room.until_settled("completed")
        told_first = "".join(room.model.requests[0].user_texts())
        assert "dead" in told_first
        assert "absent" in told_first
        assert "probe__fast" in room.model.requests[0].tools()
        await reply_to(room, ts, "and now?")
        await room.until_settled("completed", "completed")


async def test_a_thread_of_odd_history_is_read_as_context(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        root = await room.slack.bot_says(
            "Alertbot", "#inc", ODD, attachments=[{"text": ODD * 100}, {"fields": []}]
        )
        for number in range(30):
            await room.slack.say("Ben", "#inc", f"{number} {ODD} {'y' * 1000}", thread=root)
        await room.slack.events_settled(10)
        room.model.script(reply(text("it is the deploy")))
        await room.slack.say("Ana", "#inc", "why?", mention=True, thread=root)
        await room.until_settled("completed")
        assert len(room.model.last_request.raw) < 400_000
        await quiet(0.1)
        assert len(await messages(room, root)) == 32
        await must_be_well(room)

"""The test Slack is as strict as Slack, as seen through the real SDK and the real Bolt."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers.slack import Json, Mentions, SlackServer, User

INC, ANA = "C0INC00001", "U0ANA00001"


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer(retry_delays=(0.0, 0.05, 0.05), ack_timeout=0.2) as server:
        yield server


@pytest.fixture
def client(slack: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])


class Heard:
    """A Bolt app that remembers what it was told."""

    def __init__(self, slack: SlackServer) -> None:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        self.app = AsyncApp(client=client, signing_secret=slack.signing_secret)
        self.bodies: list[Json] = []
        self.retries: list[tuple[str, str]] = []
        self.deaf = 0
        self.app.use(self._overhear)
        self.app.event("message")(self._event)
        self.app.event("app_mention")(self._event)
        self.app.action("press")(self._pressed)

    async def _overhear(self, req: Any, next: Callable[[], Awaitable[None]]) -> None:
        number, reason = (req.headers.get(f"x-slack-retry-{name}", [""])[0] for name in ("num", "reason"))
        self.retries.append((number, reason))
        if self.deaf > 0:
            self.deaf -= 1
            raise RuntimeError("deaf")
        await next()

    async def _event(self, body: Json) -> None:
        self.bodies.append(body)

    async def _pressed(self, ack: Callable[[], Awaitable[None]], body: Json) -> None:
        await ack()
        self.bodies.append(body)

    @property
    def events(self) -> list[Json]:
        return [body["event"] for body in self.bodies]

    @property
    def types(self) -> list[str]:
        return ["/".join(filter(None, [e["type"], e.get("subtype")])) for e in self.events]


@asynccontextmanager
async def over_sockets(slack: SlackServer) -> AsyncIterator[Heard]:
    heard = Heard(slack)
    web_client = AsyncWebClient(base_url=slack.api_url)
    handler = AsyncSocketModeHandler(heard.app, slack.app_token, web_client=web_client, ping_interval=0.1)
    before = slack.open_sockets
    await handler.connect_async()
    await slack.wait_for(lambda s: s.open_sockets > before)
    try:
        yield heard
    finally:
        await handler.close_async()


@asynccontextmanager
async def over_http(slack: SlackServer) -> AsyncIterator[Heard]:
    heard = Heard(slack)

    async def endpoint(request: web.Request) -> web.Response:
        bolt = await heard.app.async_dispatch(await to_bolt_request(request))
        answer: web.Response = await to_aiohttp_response(bolt)
        return answer

    served = web.Application()
    served.router.add_post("/slack/events", endpoint)
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.http_events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    try:
        yield heard
    finally:
        slack.http_events_url = None
        await runner.cleanup()


async def refusal(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as refused:
        await call
    return str(refused.value.response["error"])


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text}


def section(text: str) -> Json:
    return {"type": "section", "text": mrkdwn(text)}


def button(**more: Any) -> Json:
    return {"type": "button", "text": plain("Stop"), "action_id": "press", "value": "t1", **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def rich(text: str) -> Json:
    inner = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [inner]}


def task(id_: str = "1", status: str = "complete", **more: Any) -> Json:
    return {"type": "task_card", "task_id": id_, "title": "Read logs", "status": status, **more}


def plan(*tasks: Json, **more: Any) -> Json:
    return {"type": "plan", "title": "Looking", "tasks": list(tasks), **more}


def table(*rows: list[Json]) -> Json:
    return {"type": "table", "rows": list(rows)}


def cell(text: str = "x") -> Json:
    return {"type": "raw_text", "text": text}


def container(*children: Json, **more: Any) -> Json:
    return {"type": "container", "title": plain("Evidence"), "child_blocks": list(children), **more}


def card(turn: str, state: str, **more: Any) -> Json:
    return {"event_type": "watchkeeper_card", "event_payload": {"turn_id": turn, "state": state, **more}}


NOTE: Json = {"event_type": "watchkeeper_note", "event_payload": {"kind": "partial"}}
QUIET: Json = {"unfurl_links": False, "unfurl_media": False}


# Tokens and scopes.


@pytest.mark.parametrize(
    "token, error",
    [(None, "not_authed"), ("xoxb-wrong", "invalid_auth"), ("app", "not_allowed_token_type")],
)
async def test_a_wrong_token_is_refused_by_name(slack: SlackServer, token: str | None, error: str) -> None:
    sent = slack.app_token if token == "app" else token
    client = AsyncWebClient(sent, base_url=slack.api_url)
    assert await refusal(client.users_info(user=ANA)) == error


async def test_the_right_token_says_who_it_is_and_what_it_may(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    answer = await client.auth_test()
    assert (answer["user_id"], answer["team_id"]) == (slack.bot_user_id, slack.team_id)
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


async def test_a_revoked_token_works_again_once_restored(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.revoke()
    assert await refusal(client.auth_test()) == "token_revoked"
    slack.restore()
    assert (await client.auth_test())["ok"]


async def test_a_missing_scope_is_named(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.scopes.discard("chat:write")
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel=INC, text="x")
    assert refused.value.response["error"] == "missing_scope"
    assert refused.value.response["needed"] == "chat:write"


async def test_an_unknown_method_is_refused(client: AsyncWebClient) -> None:
    assert await refusal(client.api_call("chat.shout")) == "unknown_method"


@pytest.mark.parametrize("how", ["json", "data", "params"])
async def test_arguments_may_come_in_any_encoding(client: AsyncWebClient, how: str) -> None:
    blocks = [section("x")]
    sent: Any = {how: {"channel": INC, "blocks": blocks if how == "json" else json.dumps(blocks)}}
    answer = await client.api_call("chat.postMessage", **sent)
    assert answer["message"]["blocks"][0]["text"]["text"] == "x"


# Where one may post and what.


@pytest.mark.parametrize(
    "channel, error",
    [
        ("C0NOWHERE1", "channel_not_found"),
        ("C0SECRET01", "channel_not_found"),
        ("C0NOBOT001", "not_in_channel"),
        ("C0OLD00001", "is_archived"),
    ],
)
async def test_the_bot_posts_only_where_it_is(client: AsyncWebClient, channel: str, error: str) -> None:
    assert await refusal(client.chat_postMessage(channel=channel, text="x")) == error


async def test_a_message_needs_something_to_say(client: AsyncWebClient) -> None:
    assert await refusal(client.api_call("chat.postMessage", json={"channel": INC, "text": ""})) == "no_text"
    assert (await client.chat_postMessage(channel=INC, text="x"))["ok"]


async def test_text_may_be_long_when_posted_and_short_when_updated(client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=INC, text="x" * 40_000)
    assert await refusal(client.chat_postMessage(channel=INC, text="x" * 40_001)) == "msg_too_long"
    assert await refusal(client.chat_update(channel=INC, ts=posted["ts"], text="x" * 4_001)) == "msg_too_long"
    assert (await client.chat_update(channel=INC, ts=posted["ts"], text="x" * 4_000))["ok"]


async def test_a_reply_needs_a_root_that_is_there(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("Ana", "#inc", "help")
    reply = await client.chat_postMessage(channel=INC, text="x", thread_ts=root)
    assert reply["message"]["thread_ts"] == root
    bad = client.chat_postMessage(channel=INC, text="x", thread_ts="1.000001")
    assert await refusal(bad) == "thread_not_found"
    assert await refusal(client.chat_postMessage(channel=INC, text="x", thread_ts="")) == "invalid_thread_ts"
    assert not slack.violations
    await client.chat_postMessage(channel=INC, text="x", thread_ts=reply["ts"])
    assert [v.method for v in slack.violations] == ["thread_ts"]


async def test_a_locked_thread_takes_no_reply(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("Ana", "#inc", "help")
    slack.lock_thread("#inc", root)
    locked = client.chat_postMessage(channel=INC, text="x", thread_ts=root)
    assert await refusal(locked) == "restricted_action_thread_locked"
    assert (await client.chat_postMessage(channel=INC, text="x"))["ok"]


async def test_only_own_messages_that_are_there_can_be_changed(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    theirs = await slack.say("Ana", "#inc", "mine")
    own = (await client.chat_postMessage(channel=INC, text="x"))["ts"]
    assert await refusal(client.chat_update(channel=INC, ts=theirs, text="y")) == "cant_update_message"
    assert await refusal(client.chat_delete(channel=INC, ts=theirs)) == "cant_delete_message"
    assert (await client.chat_update(channel=INC, ts=own, text="y"))["ok"]
    assert (await client.chat_delete(channel=INC, ts=own))["ok"]
    assert await refusal(client.chat_update(channel=INC, ts=own, text="z")) == "message_not_found"
    assert [v.text for v in slack.versions("#inc", own)] == ["x", "y"]


async def test_nothing_changes_in_an_archived_channel(slack: SlackServer, client: AsyncWebClient) -> None:
    own = (await client.chat_postMessage(channel=INC, text="x"))["ts"]
    slack.workspace.channel("#inc").archived = True
    assert await refusal(client.chat_update(channel=INC, ts=own, text="y")) == "is_inactive"


async def test_an_update_keeps_metadata_and_drops_blocks(slack: SlackServer, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=INC, text="x", blocks=[section("x")], metadata=NOTE)
    await client.chat_update(channel=INC, ts=posted["ts"], text="y")
    message = slack.message("#inc", posted["ts"])
    assert (message.blocks, message.metadata, bool(message.edited)) == ([], NOTE, True)
    await client.chat_update(channel=INC, ts=posted["ts"], text="y", metadata={})
    assert message.metadata is None


async def test_rich_text_is_replaced_only_by_rich_text(client: AsyncWebClient) -> None:
    own = (await client.chat_postMessage(channel=INC, text="x", blocks=[rich("x")]))["ts"]
    bad = client.chat_update(channel=INC, ts=own, text="y", blocks=[section("y")])
    assert await refusal(bad) == "block_mismatch"
    assert (await client.chat_update(channel=INC, ts=own, text="y", blocks=[rich("y")]))["ok"]


async def test_private_words_reach_members_only(slack: SlackServer, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(channel=INC, user=ANA, text="not you")
    outsider = client.chat_postEphemeral(channel=INC, user="U0XENO0001", text="not you")
    assert await refusal(outsider) == "user_not_in_channel"
    assert [(e.user, e.text) for e in slack.ephemerals] == [(ANA, "not you")]


# Metadata.


@pytest.mark.parametrize(
    "metadata, error",
    [
        ({"event_type": "a"}, "invalid_metadata_format"),
        ({"event_payload": {}}, "invalid_metadata_format"),
        ({"event_type": 1, "event_payload": {}}, "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": []}, "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": {"x": None}}, "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": {"x": {"y": None}}}, "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": {"x": ["y"]}}, "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": {}, "more": 1}, "invalid_metadata_format"),
        ("{not json", "invalid_metadata_format"),
        ({"event_type": "a", "event_payload": {"x": "y" * 9_000}}, "metadata_too_large"),
    ],
)
async def test_metadata_of_a_wrong_form_is_refused(client: AsyncWebClient, metadata: Any, error: str) -> None:
    assert await refusal(client.chat_postMessage(channel=INC, text="x", metadata=metadata)) == error


async def test_metadata_is_shown_only_when_asked_for(client: AsyncWebClient) -> None:
    payload = {"s": "x", "n": 1, "f": 1.5, "b": True, "o": {"y": "z"}, "l": [{"y": 1}]}
    metadata = {"event_type": "a-b_1", "event_payload": payload}
    ts = (await client.chat_postMessage(channel=INC, text="x", metadata=metadata))["ts"]
    without = await client.conversations_replies(channel=INC, ts=ts)
    asked = await client.conversations_replies(channel=INC, ts=ts, include_all_metadata=True)
    assert "metadata" not in without["messages"][0]
    assert asked["messages"][0]["metadata"] == metadata


async def test_a_bad_event_type_is_warned_of_and_dropped(slack: SlackServer, client: AsyncWebClient) -> None:
    metadata = {"event_type": "a.b", "event_payload": {}}
    posted = await client.chat_postMessage(channel=INC, text="x", metadata=metadata)
    assert posted["response_metadata"]["warnings"] == ["invalid_metadata_schema"]
    assert slack.message("#inc", posted["ts"]).metadata is None


# Blocks: what is accepted, and its nearest neighbour that is not.

IMAGE: Json = {"type": "image", "image_url": "https://e.com/a.png", "alt_text": "a"}
FEEDBACK: Json = {
    "type": "feedback_buttons",
    "positive_button": {"text": plain("Good"), "value": "1"},
    "negative_button": {"text": plain("Bad"), "value": "0"},
}
LIST: Json = {
    "type": "rich_text_list",
    "style": "bullet",
    "elements": [{"type": "rich_text_section", "elements": [{"type": "link", "url": "https://e.com"}]}],
}
GOOD_BLOCKS: dict[str, list[Json]] = {
    "section of 3000": [section("x" * 3000)],
    "section with fields": [{"type": "section", "fields": [mrkdwn("a"), plain("b")]}],
    "section with button": [{**section("x"), "accessory": button(), "expand": True}],
    "header of 150": [{"type": "header", "text": plain("x" * 150)}],
    "divider": [{"type": "divider"}],
    "context of 10": [{"type": "context", "elements": [mrkdwn("x")] * 9 + [IMAGE]}],
    "actions of 25": [actions(*(button(action_id=str(n)) for n in range(25)))],
    "button at its limits": [actions(button(text=plain("x" * 75), value="v" * 2000, action_id="a" * 255))],
    "markdown of 12000": [{"type": "markdown", "text": "x" * 12_000}],
    "image": [IMAGE],
    "rich text": [rich("x")],
    "rich text list": [{"type": "rich_text", "elements": [LIST]}],
    "plan of 50": [plan(*(task(str(n)) for n in range(50)))],
    "plan without tasks": [{"type": "plan", "title": "Looking"}],
    "lone task card": [task(details=rich("d"), output=rich("o"))],
    "task in progress": [task(status="in_progress")],
    "task with sources": [task(sources=[{"type": "url", "url": "https://e.com", "text": "e"}])],
    "table": [table([cell(), cell()], [cell(), rich("x")])],
    "container": [container(section("x"), is_collapsible=True, default_collapsed=True)],
    "context actions": [{"type": "context_actions", "elements": [FEEDBACK]}],
    "fifty blocks": [{"type": "divider"}] * 50,
    "blocks named apart": [{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "b"}],
    "12000 in all": [section("x" * 3000)] * 4,
}
BAD_BLOCKS: dict[str, tuple[list[Json], str]] = {
    "section of 3001": ([section("x" * 3001)], "must be less than 3001"),
    "empty section": ([section("")], "must be more than 0"),
    "section of nothing": ([{"type": "section"}], "missing required field"),
    "section with a string": ([{"type": "section", "text": "x"}], "must be an object"),
    "eleven fields": ([{"type": "section", "fields": [mrkdwn("a")] * 11}], "no more than 10"),
    "header of 151": ([{"type": "header", "text": plain("x" * 151)}], "less than 151"),
    "header in mrkdwn": ([{"type": "header", "text": mrkdwn("x")}], "unsupported type"),
    "context of 11": ([{"type": "context", "elements": [mrkdwn("x")] * 11}], "no more than 10"),
    "actions of 26": ([actions(*(button(action_id=str(n)) for n in range(26)))], "no more than 25"),
    "no actions": ([actions()], "no fewer than 1"),
    "same action twice": ([actions(button(), button())], "action_id must be unique"),
    "button text of 76": ([actions(button(text=plain("x" * 76)))], "less than 76"),
    "button value of 2001": ([actions(button(value="x" * 2001))], "less than 2001"),
    "action_id of 256": ([actions(button(action_id="x" * 256))], "less than 256"),
    "disabled button": ([actions(button(disabled=True))], "invalid additional property: disabled"),
    "unknown style": ([actions(button(style="red"))], "valid enum value"),
    "markdown of 12001": ([{"type": "markdown", "text": "x" * 12_001}], "less than 12001"),
    "image of nothing": ([{"type": "image", "alt_text": "a"}], "missing required field"),
    "image without alt": ([{"type": "image", "image_url": "https://e.com"}], "alt_text"),
    "image of a file not there": (
        [{"type": "image", "slack_file": {"id": "F0"}, "alt_text": "a"}],
        "invalid slack file",
    ),
    "rich text of strings": ([{"type": "rich_text", "elements": ["x"]}], "must be an object"),
    "plan of 51": ([plan(*(task(str(n)) for n in range(51)))], "no more than 50"),
    "plan with a text object": ([plan(title=plain("x"))], "must be a string"),
    "plan without title": ([{"type": "plan", "tasks": []}], "missing required field: title"),
    "plan and task card": ([plan(task("1")), task("2")], "cannot stand in one message"),
    "task completed": ([task(status="completed")], "valid enum value"),
    "task without id": ([{"type": "task_card", "title": "x", "status": "error"}], "task_id"),
    "task with plain details": ([task(details="read")], "must be an object"),
    "task with plain output": ([task(output="read")], "must be an object"),
    "same task twice": ([plan(task("1"), task("1"))], "task_id must be unique"),
    "empty cell": ([table([cell("")])], "must be more than 0"),
    "101 rows": ([table(*([cell()] for _ in range(101)))], "no more than 100"),
    "21 cells": ([table([cell()] * 21)], "no more than 20"),
    "container in container": ([container(container(section("x")))], "unsupported type: container"),
    "container of 11": ([container(*[section("x")] * 11)], "no more than 10"),
    "container without title": ([{"type": "container", "child_blocks": [section("x")]}], "title"),
    "collapsed but fixed": ([container(section("x"), default_collapsed=True)], "requires is_collapsible"),
    "six context actions": ([{"type": "context_actions", "elements": [FEEDBACK] * 6}], "no more than 5"),
    "unknown block": ([{"type": "shout"}], "unsupported type: shout"),
    "no type": ([{"text": "x"}], "unsupported type"),
    "unknown field": ([{"type": "divider", "colour": "red"}], "invalid additional property: colour"),
    "fifty-one blocks": ([{"type": "divider"}] * 51, "no more than 50"),
    "same block_id": ([{"type": "divider", "block_id": "a"}] * 2, "block_id must be unique"),
}


@pytest.mark.parametrize("blocks", GOOD_BLOCKS.values(), ids=GOOD_BLOCKS.keys())
async def test_good_blocks_are_taken(client: AsyncWebClient, blocks: list[Json]) -> None:
    assert (await client.chat_postMessage(channel=INC, text="x", blocks=blocks))["ok"]


@pytest.mark.parametrize("blocks, why", BAD_BLOCKS.values(), ids=BAD_BLOCKS.keys())
async def test_bad_blocks_are_refused_with_the_place(
    client: AsyncWebClient, blocks: list[Json], why: str
) -> None:
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel=INC, text="x", blocks=blocks)
    answer = refused.value.response
    assert answer["error"] == "invalid_blocks"
    messages = answer["response_metadata"]["messages"]
    assert any(why in message and "[json-pointer:/blocks" in message for message in messages), messages


@pytest.mark.parametrize(
    "blocks, error",
    [
        ([section("x" * 2999)] * 4 + [section("xxxxx")], "msg_blocks_too_long"),
        ([table([cell("x" * 5_001)], [cell("x" * 5_000)])], "msg_blocks_too_long"),
        ([table([cell()]), table([cell()])], "invalid_attachments"),
        ({"type": "divider"}, "invalid_blocks_format"),
        ("[{", "invalid_blocks_format"),
    ],
)
async def test_blocks_too_long_or_too_odd_have_their_own_errors(
    client: AsyncWebClient, blocks: Any, error: str
) -> None:
    assert await refusal(client.chat_postMessage(channel=INC, text="x", blocks=blocks)) == error


async def test_markdown_stands_alone(client: AsyncWebClient) -> None:
    assert (await client.chat_postMessage(channel=INC, markdown_text="**x**"))["ok"]
    both = client.chat_postMessage(channel=INC, markdown_text="**x**", text="x")
    assert await refusal(both) == "markdown_text_conflict"


# Files.


async def test_an_uploaded_image_can_be_shown_once_it_is_complete(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    ticket = await client.files_getUploadURLExternal(filename="chart.png", length=4)
    shown = [{"type": "image", "slack_file": {"id": ticket["file_id"]}, "alt_text": "a"}]
    async with aiohttp.ClientSession() as session:
        await session.post(ticket["upload_url"], data=b"\x89PNG")
    assert await refusal(client.chat_postMessage(channel=INC, text="x", blocks=shown)) == "invalid_blocks"
    await client.files_completeUploadExternal(files=[{"id": ticket["file_id"], "title": "Chart"}])
    assert (await client.chat_postMessage(channel=INC, text="x", blocks=shown))["ok"]
    assert slack.files[ticket["file_id"]].content == b"\x89PNG"


async def test_the_sdk_uploads_in_one_go_and_reads_it_back(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    uploaded = await client.files_upload_v2(filename="log.txt", content="boom", channel=INC)
    info = await client.files_info(file=uploaded["file"]["id"])
    assert (info["file"]["mimetype"], info["file"]["size"]) == ("text/plain", 4)
    assert slack.bot_messages("#inc")[0].subtype == "file_share"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {slack.bot_token}"}) as session:
        answer = await session.get(info["file"]["url_private"])
        assert await answer.read() == b"boom"


async def test_an_upload_that_never_came_cannot_be_completed(client: AsyncWebClient) -> None:
    ticket = await client.files_getUploadURLExternal(filename="a.png", length=4)
    complete = client.files_completeUploadExternal(files=[{"id": ticket["file_id"], "title": "a"}])
    assert await refusal(complete) == "file_not_found"


# Reactions.


async def test_a_reaction_stands_once_and_goes_once(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await slack.say("Ana", "#inc", "help")
    on: Json = {"channel": INC, "timestamp": ts, "name": "eyes"}
    await client.reactions_add(**on)
    assert slack.reactions(ts) == {"eyes": [slack.bot_user_id]}
    assert await refusal(client.reactions_add(**on)) == "already_reacted"
    assert (await client.reactions_get(channel=INC, timestamp=ts))["message"]["reactions"][0]["count"] == 1
    await client.reactions_remove(**on)
    assert await refusal(client.reactions_remove(**on)) == "no_reaction"
    assert slack.reactions(ts) == {}


@pytest.mark.parametrize(
    "change, error",
    [
        ({"name": "no_such_emoji"}, "invalid_name"),
        ({"timestamp": "1.000001"}, "message_not_found"),
        ({"timestamp": "today"}, "bad_timestamp"),
        ({"channel": "C0NOWHERE1"}, "channel_not_found"),
    ],
)
async def test_a_reaction_needs_an_emoji_and_a_message(
    slack: SlackServer, client: AsyncWebClient, change: Json, error: str
) -> None:
    ts = await slack.say("Ana", "#inc", "help")
    sent = {"channel": INC, "timestamp": ts, "name": "eyes", **change}
    assert await refusal(client.reactions_add(**sent)) == error


async def test_one_may_add_only_so_many_reactions(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await slack.say("Ana", "#inc", "help")
    slack.state.emoji |= {f"e{n}" for n in range(24)}
    for n in range(23):
        await client.reactions_add(channel=INC, timestamp=ts, name=f"e{n}")
    assert await refusal(client.reactions_add(channel=INC, timestamp=ts, name="e23")) == "too_many_reactions"


# Reading back.


async def test_a_thread_is_read_in_pages(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("Ana", "#inc", "root")
    replies = [await slack.say("Ben", "#inc", str(n), thread=root) for n in range(5)]
    pages = [p["messages"] async for p in await client.conversations_replies(channel=INC, ts=root, limit=4)]
    assert [len(page) for page in pages] == [4, 2]
    assert [m["ts"] for page in pages for m in page] == [root, *replies]
    assert pages[0][0]["reply_count"] == 5
    bad = client.conversations_replies(channel=INC, ts=root, cursor="bad")
    assert await refusal(bad) == "invalid_cursor"


@pytest.mark.parametrize("inclusive, expected", [(False, [2]), (True, [1, 2, 3])])
async def test_bounds_are_exclusive_unless_asked_otherwise(
    slack: SlackServer, client: AsyncWebClient, inclusive: bool, expected: list[int]
) -> None:
    said = [await slack.say("Ana", "#inc", str(n)) for n in range(5)]
    answer = await client.conversations_history(
        channel=INC, oldest=said[1], latest=said[3], inclusive=inclusive
    )
    assert [int(m["text"]) for m in answer["messages"]] == expected[::-1]


async def test_history_leaves_replies_to_their_threads(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("Ana", "#inc", "root")
    await slack.say("Ben", "#inc", "reply", thread=root)
    await slack.say("Ben", "#inc", "to all", thread=root, broadcast=True)
    history = await client.conversations_history(channel=INC)
    assert [m["text"] for m in history["messages"]] == ["to all", "root"]


async def test_a_thread_that_is_not_there_is_not_found(slack: SlackServer, client: AsyncWebClient) -> None:
    assert await refusal(client.conversations_replies(channel=INC, ts="1.000001")) == "thread_not_found"
    assert await refusal(client.conversations_replies(channel="C0NOBOT001", ts="1.1")) == "not_in_channel"


@pytest.mark.parametrize(
    "name, flags",
    [
        ("Ana", {"is_restricted": False, "deleted": False}),
        ("Gus", {"is_restricted": True, "is_ultra_restricted": False}),
        ("Uma", {"is_restricted": True, "is_ultra_restricted": True}),
        ("Xeno", {"is_stranger": True, "team_id": "T0OTHER001"}),
        ("Dee", {"deleted": True}),
        ("Flow", {"is_bot": True, "is_workflow_bot": True}),
    ],
)
async def test_users_are_what_slack_says_they_are(
    slack: SlackServer, client: AsyncWebClient, name: str, flags: Json
) -> None:
    shown = (await client.users_info(user=slack.workspace.user(name).id))["user"]
    assert {key: shown[key] for key in flags} == flags


async def test_who_is_not_there_is_not_found(slack: SlackServer, client: AsyncWebClient) -> None:
    assert await refusal(client.users_info(user="U0NOBODY01")) == "user_not_found"
    assert await refusal(client.bots_info(bot="B0NOBODY01")) == "bot_not_found"
    assert await refusal(client.usergroups_users_list(usergroup="S0NONE0001")) == "no_such_subteam"
    slack.add_user(User("U0NOBODY01", "Nobody"), "#inc")
    assert (await client.users_info(user="U0NOBODY01"))["ok"]


async def test_channels_teams_groups_and_links_can_be_looked_up(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    mine = await client.users_conversations(types="public_channel,private_channel", exclude_archived=True)
    assert {c["name"] for c in mine["channels"]} == {"inc", "other", "shared", "private"}
    everything = await client.conversations_list(limit=2)
    assert len(everything["channels"]) == 2
    assert everything["response_metadata"]["next_cursor"]
    assert (await client.conversations_info(channel="C0SHARED01"))["channel"]["is_ext_shared"]
    assert (await client.team_info())["team"]["id"] == slack.team_id
    assert (await client.usergroups_users_list(usergroup="S0ONCALL01"))["users"] == [ANA, "U0BEN00001"]
    assert (await client.bots_info(bot="B0ALERT001"))["bot"]["app_id"] == "A0ALERT001"
    dm = (await client.conversations_open(users=ANA))["channel"]["id"]
    ts = (await client.chat_postMessage(channel=dm, text="psst"))["ts"]
    assert ts.replace(".", "") in (await client.chat_getPermalink(channel=dm, message_ts=ts))["permalink"]


# Pace.


async def test_one_post_a_second_and_a_channel_after_a_small_burst() -> None:
    async with SlackServer(rate_scale=1.0) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])
        for n in range(5):
            await client.chat_postMessage(channel=INC, text=str(n))
        with pytest.raises(SlackApiError) as limited:
            await client.chat_postMessage(channel=INC, text="6")
        assert limited.value.response.status_code == 429
        assert limited.value.response["error"] == "ratelimited"
        assert 1 <= int(limited.value.response.headers["Retry-After"]) <= 5
        assert (await client.chat_postMessage(channel="C0OTHER001", text="6"))["ok"]
        assert not slack.violations
        assert await refusal(client.chat_postMessage(channel=INC, text="6")) == "ratelimited"
        assert [v.method for v in slack.violations] == ["chat.postMessage"]


async def test_updates_have_fifty_a_minute_for_the_whole_workspace() -> None:
    async with SlackServer(rate_scale=100.0) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])
        ts = (await client.chat_postMessage(channel=INC, text="x"))["ts"]
        for n in range(50):
            await client.chat_update(channel=INC, ts=ts, text=str(n))
        assert await refusal(client.chat_update(channel=INC, ts=ts, text="51")) == "ratelimited"
        await asyncio.sleep(0.6)
        assert (await client.chat_update(channel=INC, ts=ts, text="51"))["ok"]
        assert not slack.violations


async def test_a_forced_limit_is_broken_only_by_who_comes_too_soon(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.rate_limit("chat.postMessage", retry_after=1)
    assert await refusal(client.chat_postMessage(channel=INC, text="x")) == "ratelimited"
    assert not slack.violations
    assert await refusal(client.chat_postMessage(channel=INC, text="x")) == "ratelimited"
    assert len(slack.violations) == 1
    await asyncio.sleep(1.01)
    assert (await client.chat_postMessage(channel=INC, text="x"))["ok"]


# Events over Socket Mode.


async def test_a_mention_fires_two_events_with_two_ids(slack: SlackServer) -> None:
    async with over_sockets(slack) as heard:
        ts = await slack.say("Ana", "#inc", "why is checkout <slow>?", mention=True)
        await slack.wait_for(lambda _: len(heard.bodies) == 2)
    assert heard.types == ["message", "app_mention"]
    assert {e["ts"] for e in heard.events} == {ts}
    assert len({b["event_id"] for b in heard.bodies}) == 2
    assert heard.events[0]["text"] == f"<@{slack.bot_user_id}> why is checkout &lt;slow&gt;?"
    elements = heard.events[0]["blocks"][0]["elements"][0]["elements"]
    assert elements[0] == {"type": "user", "user_id": slack.bot_user_id}
    assert elements[1]["text"] == " why is checkout <slow>?"


@pytest.mark.parametrize("mentions", list(Mentions))
async def test_a_mentions_events_come_in_the_order_asked_for(slack: SlackServer, mentions: Mentions) -> None:
    await slack.say("Ana", "#inc", "help", mention=True, events=mentions)
    assert ", ".join(d.type for d in slack.deliveries) == mentions.value


async def test_a_mention_in_code_fires_events_without_a_user_element(slack: SlackServer) -> None:
    await slack.say("Ana", "#inc", "the log says `@bot restart`")
    message, mention = slack.deliveries
    assert (message.type, mention.type) == ("message", "app_mention")
    kinds = [e["type"] for e in message.event["blocks"][0]["elements"][0]["elements"]]
    assert kinds == ["text", "text"]
    assert f"`<@{slack.bot_user_id}> restart`" in message.event["text"]


async def test_edits_and_deletions_are_told(slack: SlackServer) -> None:
    ts = await slack.say("Ana", "#inc", "help")
    await slack.edit(ts, "help now", mention=True)
    await slack.unfurl(ts)
    await slack.delete(ts)
    changed = "message/message_changed"
    told = ["message", changed, "app_mention", changed, "message/message_deleted"]
    assert [d.type for d in slack.deliveries] == told
    edit, again = slack.deliveries[1].event, slack.deliveries[2].event
    assert (edit["message"]["ts"], edit["previous_message"]["text"]) == (ts, "help")
    assert edit["ts"] > ts
    assert again["edited"]["user"] == ANA
    assert slack.deliveries[-1].event["deleted_ts"] == ts


async def test_a_deleted_root_with_replies_leaves_a_tombstone(slack: SlackServer) -> None:
    root = await slack.say("Ana", "#inc", "help")
    await slack.say("Ben", "#inc", "me too", thread=root)
    await slack.delete(root)
    last = slack.deliveries[-1]
    assert (last.type, last.event["message"]["subtype"]) == ("message/message_changed", "tombstone")


async def test_the_bots_own_messages_fire_events_too(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = (await client.chat_postMessage(channel=INC, text="x", metadata=NOTE))["ts"]
    await client.chat_update(channel=INC, ts=ts, text="y")
    await client.chat_delete(channel=INC, ts=ts)
    told = ["message", "message/message_changed", "message/message_deleted"]
    assert [d.type for d in slack.deliveries] == told
    assert slack.deliveries[0].event["bot_id"] == "B0WATCH001"
    assert "metadata" not in slack.deliveries[0].event


async def test_people_and_bots_look_like_themselves(slack: SlackServer) -> None:
    await slack.say("Xeno", "#shared", "hello", mention=True, events=Mentions.MENTION_ONLY)
    await slack.alert("#inc", "Checkout is slow")
    await slack.bot_says("Flow", "#inc", f"<@{slack.bot_user_id}> go", events=Mentions.MENTION_ONLY)
    await slack.say("Ana", "#inc", "see", files=["a.png"])
    root = await slack.say("Ana", "#inc", "root")
    await slack.say("Ana", "#inc", "all", thread=root, broadcast=True)
    outsider, alert, flow, share, _, shout = slack.deliveries
    assert outsider.event["user_team"] == "T0OTHER001"
    assert outsider.body["is_ext_shared_channel"]
    assert (alert.event["subtype"], alert.event["attachments"][0]["title"]) == (
        "bot_message",
        "Checkout is slow",
    )
    assert "user" not in alert.event
    assert flow.event["bot_profile"]["is_workflow_bot"]
    assert (share.type, share.event["files"][0]["name"]) == ("message/file_share", "a.png")
    assert (shout.type, shout.event["thread_ts"]) == ("message/thread_broadcast", root)
    assert shout.event["parent_user_id"] == ANA


async def test_no_event_comes_from_where_the_bot_is_not(slack: SlackServer) -> None:
    await slack.say("Ana", "#nobot", "psst")
    slack.subscriptions.discard("message.channels")
    await slack.say("Ana", "#inc", "help", mention=True)
    assert [d.type for d in slack.deliveries] == ["app_mention"]


async def test_an_event_nobody_acknowledged_comes_again(slack: SlackServer) -> None:
    async with over_sockets(slack) as heard:
        slack.drop_event_acks(1)
        await slack.say("Ana", "#inc", "help")
        await slack.events_settled()
        assert len(heard.bodies) == 2
    assert heard.retries == [("0", ""), ("1", "timeout")]
    assert len({b["event_id"] for b in heard.bodies}) == 1


async def test_an_event_waits_for_a_socket(slack: SlackServer) -> None:
    slack.state.events.retry_delays = (0.0, 0.3, 0.3)
    ts = await slack.say("Ana", "#inc", "help")
    async with over_sockets(slack) as heard:
        await slack.wait_for(lambda _: heard.bodies)
    assert heard.events[0]["ts"] == ts
    assert slack.deliveries[0].attempts[0].failed == "connection_failed"


async def test_a_click_is_never_sent_again(slack: SlackServer, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=INC, text="x", blocks=[actions(button())])
    assert not await slack.click(posted["ts"], "press", "Ana")
    assert len(slack.deliveries[-1].attempts) == 1
    async with over_sockets(slack) as heard:
        assert await slack.click(posted["ts"], "press", "Ben")
        assert [b["user"]["id"] for b in heard.bodies] == ["U0BEN00001"]
        body = heard.bodies[0]
    assert (body["container"]["message_ts"], body["actions"][0]["value"]) == (posted["ts"], "t1")
    async with aiohttp.ClientSession() as session:
        for _ in range(5):
            await session.post(body["response_url"], json={"text": "already ended"})
        sixth = await session.post(body["response_url"], json={"text": "already ended"})
    assert sixth.status == 404
    assert [e.text for e in slack.ephemerals] == ["already ended"] * 5


async def test_nobody_can_press_what_is_not_shown(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = (await client.chat_postMessage(channel=INC, text="x", blocks=[actions(button())]))["ts"]
    await client.chat_update(channel=INC, ts=ts, text="done", blocks=[section("done")])
    with pytest.raises(AssertionError, match="nothing to press"):
        await slack.click(ts, "press", "Ana")
    async with over_sockets(slack):
        assert await slack.click(ts, "press", "Ana", version=0)


async def test_a_button_for_some_is_not_there_for_others(slack: SlackServer, client: AsyncWebClient) -> None:
    mine = actions(button(visible_to_user_ids=[ANA]))
    ts = (await client.chat_postMessage(channel=INC, text="x", blocks=[mine]))["ts"]
    async with over_sockets(slack):
        assert await slack.click(ts, "press", "Ana")
        with pytest.raises(AssertionError, match="shows Ben nothing"):
            await slack.click(ts, "press", "Ben")


async def test_an_image_cannot_be_shown_before_slack_has_digested_it(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.file_processing_s = 0.1
    uploaded = await client.files_upload_v2(filename="chart.png", content=b"\x89PNG")
    shown = [{"type": "image", "slack_file": {"id": uploaded["file"]["id"]}, "alt_text": "a"}]
    assert await refusal(client.chat_postMessage(channel=INC, text="x", blocks=shown)) == "invalid_blocks"
    await asyncio.sleep(0.11)
    assert (await client.chat_postMessage(channel=INC, text="x", blocks=shown))["ok"]


async def test_each_envelope_goes_to_one_socket_and_the_eleventh_is_turned_away(slack: SlackServer) -> None:
    opener = AsyncWebClient(base_url=slack.api_url)
    async with aiohttp.ClientSession() as session:

        async def connected() -> aiohttp.ClientWebSocketResponse:
            url = (await opener.apps_connections_open(app_token=slack.app_token))["url"]
            return await session.ws_connect(url)

        sockets = [await connected() for _ in range(10)]
        hellos = [await s.receive_json() for s in sockets]
        assert [h["num_connections"] for h in hellos] == list(range(1, 11))
        assert hellos[0]["debug_info"]["approximate_connection_time"] == 18060
        refused = await (await connected()).receive_json()
        assert (refused["type"], refused["reason"]) == ("disconnect", "too_many_websockets")
        for n in range(10):
            await slack.say("Ana", "#inc", str(n))
        for socket in sockets:
            envelope = await socket.receive_json()
            await socket.send_json({"envelope_id": envelope["envelope_id"]})
        await slack.events_settled()
        assert all(len(d.attempts) == 1 for d in slack.deliveries)


@pytest.mark.parametrize("trouble", ["refresh", "warning", "cut"])
async def test_the_sdk_comes_back_after_its_socket_ends(slack: SlackServer, trouble: str) -> None:
    async with over_sockets(slack) as heard:
        opened = slack.state.sockets.opened
        if trouble == "cut":
            slack.cut_sockets()
        else:
            await slack.refresh_sockets("warning" if trouble == "warning" else "refresh_requested")
        await slack.wait_for(lambda s: s.state.sockets.opened > opened and s.open_sockets)
        ts = await slack.say("Ana", "#inc", "still there?")
        await slack.wait_for(lambda _: heard.bodies)
    assert heard.events[0]["ts"] == ts


async def test_events_can_be_doubled_and_turned_around(slack: SlackServer) -> None:
    async with over_sockets(slack) as heard:
        slack.duplicate_event(2, when=lambda d: d.event.get("text") == "twice")
        slack.hold_events()
        await slack.say("Ana", "#inc", "first")
        await slack.say("Ana", "#inc", "twice")
        assert heard.bodies == []
        slack.release_events(reverse=True)
        await slack.wait_for(lambda _: len(heard.bodies) == 3)
    assert [e["text"] for e in heard.events] == ["twice", "twice", "first"]
    assert len({b["event_id"] for b in heard.bodies}) == 2


# Events over HTTP.


async def test_http_events_are_signed_and_retried_with_a_reason(slack: SlackServer) -> None:
    async with over_http(slack) as heard:
        assert await slack.verify_url()
        heard.retries.clear()
        heard.deaf = 2
        await slack.say("Ana", "#inc", "help")
        await slack.events_settled()
    assert heard.retries == [("", ""), ("1", "http_error"), ("2", "http_error")]
    assert [e["text"] for e in heard.events] == ["help"]


async def test_a_forged_signature_is_seen(slack: SlackServer) -> None:
    async with over_http(slack) as heard:
        body = json.dumps({"type": "event_callback", "event": {"type": "message"}}).encode()
        forged = slack.state.http.signed(b"something else")
        old = slack.state.http.signed(body, int(time.time()) - 600)
        for headers in (forged, old):
            status, _, _ = await slack.state.http.post(body, "application/json", headers)
            assert status == 401
    assert heard.bodies == []


async def test_a_click_comes_as_a_form_over_http(slack: SlackServer, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=INC, text="x", blocks=[actions(button())])
    async with over_http(slack) as heard:
        assert await slack.click(posted["ts"], "press", "Ana")
    assert heard.bodies[0]["type"] == "block_actions"


async def test_an_app_that_is_slow_or_away_is_tried_again(slack: SlackServer) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(0.3)
        return web.Response()

    served = web.Application()
    served.router.add_post("/", slow)
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.http_events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await slack.say("Ana", "#inc", "help")
    await slack.wait_for(lambda s: s.deliveries[0].attempts)
    await runner.cleanup()
    await slack.events_settled()
    reasons = [a.failed for a in slack.deliveries[0].attempts]
    assert reasons[0] == "http_timeout"
    assert reasons[-1] == "connection_failed"


# Faults.


async def test_a_fault_hits_so_often_and_only_what_it_is_meant_for(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.fail("chat.postMessage", "fatal_error", times=2, when=lambda args: args["text"] == "x")
    assert (await client.chat_postMessage(channel=INC, text="y"))["ok"]
    for _ in range(2):
        assert await refusal(client.chat_postMessage(channel=INC, text="x")) == "fatal_error"
    assert (await client.chat_postMessage(channel=INC, text="x"))["ok"]
    assert [c.ok for c in slack.calls_of("chat.postMessage")] == [True, False, False, True]


@pytest.mark.parametrize("applied, there", [(False, 0), (True, 1)])
async def test_a_server_error_may_come_before_or_after_the_deed(
    slack: SlackServer, client: AsyncWebClient, applied: bool, there: int
) -> None:
    slack.fail("chat.postMessage", status=503, applied=applied)
    with pytest.raises(SlackApiError) as failed:
        await client.chat_postMessage(channel=INC, text="x")
    assert failed.value.response.status_code == 503
    assert len(slack.bot_messages()) == there


async def test_a_lost_reply_leaves_the_deed_done(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.lose_reply("chat.postMessage")
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=INC, text="x")
    assert [m.text for m in slack.bot_messages()] == ["x"]
    assert [c.lost for c in slack.calls] == [True]


async def test_the_sdks_own_retry_after_a_lost_reply_posts_twice(slack: SlackServer) -> None:
    client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
    slack.lose_reply("chat.postMessage")
    await client.chat_postMessage(channel=INC, text="x")
    assert len(slack.bot_messages()) == 2


@pytest.mark.parametrize("applied, before", [(False, 0), (True, 1)])
async def test_a_call_hangs_until_released(
    slack: SlackServer, client: AsyncWebClient, applied: bool, before: int
) -> None:
    hang = slack.hang("chat.postMessage", applied=applied)
    posting = asyncio.create_task(client.chat_postMessage(channel=INC, text="x"))
    await slack.wait_for(lambda _: hang.waiting)
    assert len(slack.bot_messages()) == before
    hang.release()
    assert (await posting)["ok"]
    assert len(slack.bot_messages()) == 1
    assert not slack.calls[0].lost


async def test_a_caller_who_gave_up_has_lost_the_answer(slack: SlackServer) -> None:
    client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, timeout=1, retry_handlers=[])
    slack.delay("chat.postMessage", 1.1, times=1)
    with pytest.raises(asyncio.TimeoutError):
        await client.chat_postMessage(channel=INC, text="x")
    await slack.wait_for(lambda s: s.calls[0].lost)
    assert len(slack.bot_messages()) == 1


async def test_slack_can_go_away_and_come_back_as_it_was(slack: SlackServer, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=INC, text="x")
    async with over_sockets(slack) as heard:
        await slack.down(refuse=False)
        with pytest.raises(SlackApiError):
            await client.auth_test()
        await slack.down()
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.auth_test()
        await slack.up()
        assert (await client.chat_update(channel=INC, ts=posted["ts"], text="y"))["ok"]
        await slack.wait_for(lambda s: s.open_sockets)
        await slack.say("Ana", "#inc", "back")
        await slack.wait_for(lambda _: "back" in [e.get("text") for e in heard.events])


async def test_waiting_in_vain_shows_what_there_is(slack: SlackServer) -> None:
    await slack.say("Ana", "#inc", "where is the answer?")
    with pytest.raises(AssertionError, match="where is the answer"):
        await slack.wait_for(lambda s: s.bot_messages(), timeout=0.05)


# The laws of the app's own messages.


async def posted(client: AsyncWebClient, metadata: Json | None, **more: Any) -> str:
    sent = {"text": "x", **QUIET, **more}
    return str((await client.chat_postMessage(channel=INC, metadata=metadata, **sent))["ts"])


async def updated(client: AsyncWebClient, ts: str, metadata: Json, **more: Any) -> None:
    await client.chat_update(channel=INC, ts=ts, metadata=metadata, **{"text": "x", **more})


async def test_a_card_that_lives_and_ends_is_lawful(slack: SlackServer, client: AsyncWebClient) -> None:
    running = [plan(task(status="in_progress")), actions(button(action_id="watchkeeper_stop"))]
    ts = await posted(client, card("t1", "live"), blocks=running)
    assert [m.ts for m in slack.live_cards()] == [ts]
    await updated(client, ts, card("t2", "live"), blocks=running)
    await updated(client, ts, card("t2", "released", reason="completed"), blocks=[plan(task())])
    answer = {"turn_id": "t2", "final_event_id": "e9", "part": 1, "parts": 1}
    await posted(client, {"event_type": "watchkeeper_answer", "event_payload": answer}, text="&lt;!here&gt;")
    await posted(client, NOTE)
    assert slack.card_faults() == []
    assert slack.live_cards() == []
    assert slack.edits_after_release() == []


async def test_a_card_never_lives_again(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await posted(client, card("t1", "live"))
    await updated(client, ts, card("t1", "released", reason="stopped"))
    await updated(client, ts, card("t1", "live"))
    assert len(slack.edits_after_release()) == 1
    assert ["live again" in fault for fault in slack.card_faults()] == [True]


async def test_a_card_that_was_handed_on_does_not_come_back(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    ts = await posted(client, card("t1", "live"))
    await updated(client, ts, card("t2", "live"))
    await posted(client, card("t1", "live"))
    assert ["live again" in fault for fault in slack.card_faults()] == [True]


async def test_a_release_may_be_repeated_when_its_answer_was_lost(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    ts = await posted(client, card("t1", "live"))
    slack.lose_reply("chat.update")
    with pytest.raises(aiohttp.ClientError):
        await updated(client, ts, card("t1", "released", reason="failed"))
    await updated(client, ts, card("t1", "released", reason="failed"))
    assert slack.edits_after_release() == []


@pytest.mark.parametrize(
    "metadata, blocks, word",
    [
        (None, None, "no watchkeeper metadata"),
        (card("t1", "released"), None, "needs a settle reason"),
        (card("t1", "live", reason="completed"), None, "has no reason"),
        (card("t1", "asleep"), None, "neither live nor released"),
        (
            card("t1", "released", reason="empty"),
            [actions(button(action_id="watchkeeper_stop"))],
            "Stop button",
        ),
        (card("t1", "released", reason="empty"), [plan(task(status="in_progress"))], "task in progress"),
        (NOTE, [section("<!here> look")], "pings <!here>"),
        ({"event_type": "watchkeeper_note", "event_payload": {}}, None, "no kind"),
    ],
)
async def test_an_unlawful_message_is_named(
    slack: SlackServer, client: AsyncWebClient, metadata: Json | None, blocks: list[Json] | None, word: str
) -> None:
    await posted(client, metadata, blocks=blocks)
    faults = slack.card_faults()
    assert len(faults) == 1
    assert word in faults[0]


async def test_an_answer_pings_only_whom_the_test_allows(slack: SlackServer, client: AsyncWebClient) -> None:
    payload = {"turn_id": "t2", "final_event_id": "e9", "part": 1, "parts": 1}
    answer = {"event_type": "watchkeeper_answer", "event_payload": payload}
    await posted(client, answer, text=f"<@{ANA}> did it")
    assert len(slack.card_faults()) == 1
    assert slack.card_faults(allow_mentions=[f"<@{ANA}>"]) == []


async def test_previews_and_two_reactions_at_once_are_unlawful(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    ts = await slack.say("Ana", "#inc", "help")
    await client.reactions_add(channel=INC, timestamp=ts, name="eyes")
    await client.reactions_add(channel=INC, timestamp=ts, name="clock4")
    await posted(client, NOTE, unfurl_media=True)
    assert [word in fault for word, fault in zip(["unfurl_media", "eyes"], slack.card_faults(), strict=True)]

"""Stored before it is acknowledged, over Socket Mode and over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from bot.errors import Permanent, Unusable
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from bot.slack.http import LARGEST_BODY, slack_events_handler
from bot.slack.listen import slack_app
from bot.slack.socket import SocketMode
from core.arrivals import Arrival, Source, Thread
from core.card import Card, CardState
from tests.bot.slack.conftest import Inbox, show
from tests.servers.slack import Mentions, SlackServer

Door = Callable[[], Awaitable[None]]
CARD = Card("turn-1", CardState.LIVE, "goal", "Looking", stoppable=True)


async def until(holds: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
async def socket(slack: SlackServer, connection: Connection, inbox: Inbox) -> AsyncIterator[SocketMode]:
    app = slack_app(accept=inbox.accept, connection=connection)
    mode = SocketMode(app, slack.app_token, slack.api_url)
    yield mode
    await mode.close()


@pytest.fixture
async def http(slack: SlackServer, connection: Connection, inbox: Inbox) -> AsyncIterator[str]:
    app = slack_app(accept=inbox.accept, connection=connection, signing_secret=slack.signing_secret)
    server = web.Application()
    server.router.add_post("/slack/events", slack_events_handler(app, signing_secret=slack.signing_secret))
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


@pytest.fixture(params=["socket", "http"])
async def door(request: pytest.FixtureRequest, slack: SlackServer, socket: SocketMode, http: str) -> Door:
    """Opens one of the two ways in."""

    async def open_it() -> None:
        if request.param == "http":
            slack.http_events_url = http
            return
        await socket.start()
        await until(lambda: socket.connected)

    return open_it


async def test_what_people_write_is_stored_and_acknowledged(
    slack: SlackServer, connection: Connection, inbox: Inbox, door: Door
) -> None:
    await connection.connect()
    await door()
    ts = await slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
    await slack.say("Ben", "#inc", "db-3?", thread=ts)
    await slack.say("Cleo", "#inc", "lunch?")
    await until(lambda: all(delivery.acked for delivery in slack.deliveries))
    assert [len(delivery.attempts) for delivery in slack.deliveries] == [1, 1, 1, 1]
    sources = [thing.source for thing in inbox.stored if isinstance(thing, Arrival)]
    assert sorted(sources) == [Source.MENTION, Source.MENTION, Source.THREAD_REPLY]
    assert len(inbox.keys) == 2


@pytest.mark.parametrize("events", Mentions)
async def test_both_events_of_a_mention_are_one_message_in_any_order(
    slack: SlackServer, connection: Connection, inbox: Inbox, door: Door, events: Mentions
) -> None:
    await connection.connect()
    await door()
    ts = await slack.say("Ana", "#inc", "why?", mention=True, events=events)
    await until(lambda: all(delivery.acked for delivery in slack.deliveries))
    channel = slack.workspace.channel("#inc").id
    assert inbox.keys == {f"slack:{slack.team_id}:{channel}:{ts}"}
    assert len({repr(thing) for thing in inbox.stored}) == 1


async def test_what_could_not_be_stored_is_not_acknowledged_and_comes_again(
    slack: SlackServer, connection: Connection, inbox: Inbox, door: Door
) -> None:
    await connection.connect()
    await door()
    inbox.broken = 1
    await slack.say("Ana", "#inc", "why?", mention=True, events=Mentions.MESSAGE_ONLY)
    [delivery] = slack.deliveries
    # Without an acknowledgement Slack waits three seconds on a socket; over HTTP the 500 tells it at once.
    async with asyncio.timeout(8):
        await delivery.done.wait()
    assert (len(inbox.stored), inbox.tried, delivery.acked) == (1, 2, True)
    assert delivery.attempts[0].failed in {"http_error", "timeout"}


async def test_nothing_is_acknowledged_before_we_know_who_we_are(
    slack: SlackServer, connection: Connection, inbox: Inbox, http: str
) -> None:
    slack.http_events_url = http
    assert await slack.verify_url()
    await slack.say("Ana", "#inc", "why?", mention=True, events=Mentions.MESSAGE_ONLY)
    [delivery] = slack.deliveries
    await until(lambda: len(delivery.attempts) >= 1)
    assert delivery.attempts[0].failed == "http_error"
    assert inbox.stored == []
    await connection.connect()
    await until(lambda: delivery.acked)
    assert len(inbox.stored) == 1


async def test_a_press_of_stop_is_stored_and_acknowledged(
    slack: SlackServer, chat: SlackChat, inbox: Inbox, thread: Thread, door: Door
) -> None:
    await door()
    card = await show(chat, thread, None, CARD)
    assert await slack.click(card, "watchkeeper_stop", "Ben")
    [press] = [thing for thing in inbox.stored if isinstance(thing, Arrival) and thing.stops_turn]
    assert (press.stops_turn, press.author_id, press.thread) == ("turn-1", "U0BEN00001", thread)


async def test_our_own_messages_edits_and_deletions_are_acknowledged_and_nothing_else(
    slack: SlackServer, chat: SlackChat, inbox: Inbox, thread: Thread, door: Door
) -> None:
    await door()
    before = len(slack.deliveries)
    ref = await show(chat, thread, None, CARD)
    await show(chat, thread, ref, replace(CARD, headline="Still looking"))
    await chat.delete(thread, ref)
    await until(lambda: all(delivery.acked for delivery in slack.deliveries[before:]))
    assert len(slack.deliveries) == before + 3
    assert all(thing.thread == thread and isinstance(thing, Arrival) for thing in inbox.stored)


async def test_edits_and_deletions_are_stored(
    slack: SlackServer, connection: Connection, inbox: Inbox, door: Door
) -> None:
    await connection.connect()
    await door()
    root = await slack.say("Ana", "#inc", "why?", mention=True)
    reply = await slack.say("Ben", "#inc", "db-2", thread=root)
    await slack.edit(reply, "db-3")
    await slack.unfurl(reply)
    await slack.delete(reply)
    await slack.delete(root)
    await until(lambda: all(delivery.acked for delivery in slack.deliveries))
    kinds = sorted(type(thing).__name__ for thing in inbox.stored)
    assert kinds == ["Arrival", "Arrival", "Arrival", "Deletion", "Deletion", "Edit"]


async def test_events_of_another_workspace_are_acknowledged_and_not_stored(
    slack: SlackServer, connection: Connection, inbox: Inbox, http: str
) -> None:
    await connection.connect()
    event = {"type": "message", "channel": "C1", "user": "U1", "ts": "1700000000.000100", "text": "hi"}
    event |= {"text": f"<@{slack.bot_user_id}> hi"}
    for team, stored in (("T0ELSE0001", 0), (slack.team_id, 1)):
        body = json.dumps({"type": "event_callback", "team_id": team, "event": event}).encode()
        headers = {"Content-Type": "application/json"} | slack.state.http.signed(body)
        assert await post(http, body, headers) == 200
        assert len(inbox.stored) == stored


# --- HTTP ---------------------------------------------------------------------------------------------------


BODY = json.dumps({"type": "event_callback", "event": {"type": "message"}}).encode()


async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 200),
        ({"X-Slack-Request-Timestamp": "yesterday"}, 401),
        ({"X-Slack-Request-Timestamp": "1" * 40}, 401),
        ({"X-Slack-Request-Timestamp": "-5"}, 401),
        ({"X-Slack-Request-Timestamp": ""}, 401),
        ({"X-Slack-Signature": "v0=00"}, 401),
        ({"X-Slack-Signature": "v0=ä"}, 401),
        ({"X-Slack-Signature": ""}, 401),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
async def test_only_what_slack_signed_comes_in(
    slack: SlackServer, connection: Connection, http: str, headers: dict[str, str], status: int
) -> None:
    await connection.connect()
    signed = slack.state.http.signed(BODY)
    assert await post(http, BODY, {"Content-Type": "application/json"} | signed | headers) in {status, 400}


@pytest.mark.parametrize("offset", [-400, 400])
async def test_an_old_or_future_signature_is_refused(
    slack: SlackServer, connection: Connection, http: str, offset: int
) -> None:

    signed = slack.state.http.signed(BODY, int(time.time()) + offset)
    assert await post(http, BODY, signed) == 401


async def test_a_changed_byte_is_refused(slack: SlackServer, connection: Connection, http: str) -> None:
    signed = slack.state.http.signed(BODY)
    assert await post(http, BODY.replace(b"message", b"massage"), signed) == 401


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"payload=%7B", b""])
async def test_signed_nonsense_is_refused_without_a_crash(
    slack: SlackServer, connection: Connection, http: str, body: bytes
) -> None:
    await connection.connect()
    status = await post(http, body, {"Content-Type": "application/json"} | slack.state.http.signed(body))
    assert status in {200, 400, 401}


async def test_a_huge_body_is_refused(slack: SlackServer, connection: Connection, http: str) -> None:
    body = b"x" * (LARGEST_BODY + 1)
    assert await post(http, body, slack.state.http.signed(body)) == 413


def test_http_without_a_signing_secret_does_not_start(inbox: Inbox) -> None:
    with pytest.raises(Unusable, match="SLACK_SIGNING_SECRET"):
        slack_events_handler(None, signing_secret=" ")  # type: ignore[arg-type]


# --- Socket Mode --------------------------------------------------------------------------------------------


async def test_a_rejected_app_token_ends_the_start(
    slack: SlackServer, connection: Connection, inbox: Inbox
) -> None:
    mode = SocketMode(slack_app(accept=inbox.accept, connection=connection), "xapp-wrong", slack.api_url)
    with pytest.raises(Permanent) as rejected:
        await mode.start()
    assert rejected.value.code == "invalid_auth"
    assert "invalid_auth" in mode.reason
    await mode.close()


async def test_slack_out_of_reach_at_the_start_is_waited_for(
    slack: SlackServer, connection: Connection, socket: SocketMode
) -> None:
    await connection.connect()
    await slack.down()
    await socket.start()
    assert not socket.connected
    assert "apps.connections.open" in socket.reason
    await slack.up()
    await until(lambda: socket.connected, 10)
    assert socket.reason == ""


@pytest.mark.slow
async def test_a_socket_that_is_cut_comes_back(
    slack: SlackServer, connection: Connection, inbox: Inbox, socket: SocketMode
) -> None:
    await connection.connect()
    await socket.start()
    await until(lambda: socket.connected)
    slack.state.sockets.cut()
    await until(lambda: not socket.connected)
    assert socket.reason
    await until(lambda: socket.connected, 15)
    await slack.say("Ana", "#inc", "why?", mention=True)
    await until(lambda: len(inbox.keys) == 1)


async def test_slack_may_ask_for_a_new_connection(
    slack: SlackServer, connection: Connection, inbox: Inbox, socket: SocketMode
) -> None:
    await connection.connect()
    await socket.start()
    await until(lambda: socket.connected)
    opened = slack.state.sockets.opened
    await slack.state.sockets.refresh("refresh_requested", close=True)
    await until(lambda: slack.state.sockets.opened > opened and socket.connected, 10)
    await slack.say("Ana", "#inc", "why?", mention=True)
    await until(lambda: len(inbox.keys) == 1)


async def test_a_socket_without_a_sign_of_life_is_made_anew(
    slack: SlackServer, connection: Connection, inbox: Inbox
) -> None:
    """Pings come every ten seconds, so that to so impatient a watchdog every socket seems dead."""
    app = slack_app(accept=inbox.accept, connection=connection)
    mode = SocketMode(app, slack.app_token, slack.api_url, dead_after_s=0.5)
    await mode.start()
    await until(lambda: slack.state.sockets.opened >= 2)
    await mode.close()
    await until(lambda: slack.open_sockets == 0)


async def test_closing_leaves_no_socket_open(
    slack: SlackServer, connection: Connection, socket: SocketMode
) -> None:
    await connection.connect()
    await socket.start()
    await until(lambda: socket.connected)
    await socket.close()
    await until(lambda: slack.open_sockets == 0)
    assert not socket.connected
    assert "closed" in socket.reason

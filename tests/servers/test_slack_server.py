"""The test Slack is as strict as Slack, as seen through the real SDK and the real Bolt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers.slack import Json, SlackServer


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer(retry_delays=(0.0, 0.05, 0.05), ack_timeout=0.3) as server:
        yield server


@pytest.fixture
def client(slack: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])


class Heard:
    """A Bolt app that remembers what it was told."""

    def __init__(self, slack: SlackServer) -> None:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        self.app = AsyncApp(client=client, signing_secret=slack.signing_secret)
        self.events: list[Json] = []
        self.bodies: list[Json] = []
        self.app.event("message")(self._event)
        self.app.event("app_mention")(self._event)
        self.app.action("press")(self._pressed)

    async def _event(self, event: Json, body: Json) -> None:
        self.events.append(event)
        self.bodies.append(body)

    async def _pressed(self, ack: Callable[[], Any], body: Json) -> None:
        await ack()
        self.bodies.append(body)

    @property
    def types(self) -> list[str]:
        return ["/".join(filter(None, [e["type"], e.get("subtype")])) for e in self.events]


@asynccontextmanager
async def over_sockets(slack: SlackServer) -> AsyncIterator[Heard]:
    heard = Heard(slack)
    web_client = AsyncWebClient(base_url=slack.api_url)
    handler = AsyncSocketModeHandler(heard.app, slack.app_token, web_client=web_client, ping_interval=0.1)
    await handler.connect_async()
    await slack.wait_for(lambda s: s.open_sockets)
    try:
        yield heard
    finally:
        await handler.close_async()


@asynccontextmanager
async def over_http(slack: SlackServer) -> AsyncIterator[Heard]:
    heard = Heard(slack)

    async def endpoint(request: web.Request) -> web.Response:
        answer: web.Response = await to_aiohttp_response(
            await heard.app.async_dispatch(await to_bolt_request(request))
        )
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


async def test_a_mention_fires_two_events_with_two_ids_over_sockets(slack: SlackServer) -> None:
    async with over_sockets(slack) as heard:
        ts = await slack.say("Ana", "#inc", "why is checkout <slow>?", mention=True)
        await slack.events_settled()
    assert heard.types == ["message", "app_mention"]
    assert {e["ts"] for e in heard.events} == {ts}
    assert len({b["event_id"] for b in heard.bodies}) == 2
    assert heard.events[0]["text"] == f"<@{slack.bot_user_id}> why is checkout &lt;slow&gt;?"


async def test_a_button_reaches_the_app_over_http(slack: SlackServer, client: AsyncWebClient) -> None:
    button = {
        "type": "button",
        "action_id": "press",
        "text": {"type": "plain_text", "text": "Stop"},
        "value": "t1",
    }
    posted = await client.chat_postMessage(
        channel="C0INC00001", text="x", blocks=[{"type": "actions", "elements": [button]}]
    )
    async with over_http(slack) as heard:
        assert await slack.click(posted["ts"], "press", "Ana")
    assert heard.bodies[0]["actions"][0]["value"] == "t1"

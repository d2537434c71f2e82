"""Socket Mode: Bolt's client, and a watchdog outside of it.

The client reconnects by itself, but has been seen alive with a dead socket for hours
(https://github.com/NousResearch/hermes-agent/issues/14326) and stuck after a failed reconnect
(https://github.com/slackapi/python-slack-sdk/issues/1446). So signs of life are watched here, and when there
is none for a while, everything is torn down and made anew.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from typing import Any

import aiohttp
import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import Permanent, Rejected, Temporary
from bot.slack.api import ANSWER_WITHIN_S, SLACKS_API
from bot.slack.payload import is_sound
from bot.slack.refusals import Refusal, refusal

log = structlog.get_logger()

PING_EVERY_S = 10.0
DEAD_AFTER_S = 60.0
LOOK_EVERY_S = 1.0
LONGEST_PAUSE_S = 30.0
GIVE_EVENTS_S = 2.0
RECONNECT_WITHIN_S = 5.0
SECRETS = re.compile(r"(ticket=|xapp-|xoxb-)[^\s&'\"]+")


class SocketMode:
    """One connection of this process. `connected` is what /readyz asks; `reason` says why not."""

    def __init__(
        self, app: AsyncApp, app_token: str, api_url: str | None = None, *, dead_after_s: float = DEAD_AFTER_S
    ) -> None:
        self._app, self._token, self._url = app, app_token, api_url or SLACKS_API
        self._dead_after = dead_after_s
        self._line: Line | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._trouble = "Socket Mode has not been opened yet"

    @property
    def connected(self) -> bool:
        """Whether Slack has greeted us on the present socket and has been heard lately."""
        return self._line is not None and self._line.alive(self._dead_after)

    @property
    def reason(self) -> str:
        """Why not connected, for people; "" when connected."""
        return "" if self.connected else self._trouble

    async def start(self) -> None:
        """Open it and keep it open. Permanent when Slack rejects the app token; else it goes on trying."""
        try:
            self._line = await self._opened()
        except Rejected:
            raise
        except (Permanent, Temporary):
            pass
        self._keeper = asyncio.create_task(self._keep(), name="slack-socket-mode")

    async def close(self) -> None:
        """Take no more events, finish those under way, close the socket."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._drop()
        self._trouble = "Socket Mode is closed"

    async def _keep(self) -> None:
        """Look after the line; after a failure wait longer each time, never all processes in step."""
        pause = LOOK_EVERY_S
        while True:
            await asyncio.sleep(pause if self._line is None else LOOK_EVERY_S)
            if self._line is not None and not self._line.broken(self._dead_after):
                pause = LOOK_EVERY_S
                continue
            if self._line is not None:
                self._trouble = "Socket Mode: the connection was lost"
                log.warning("slack_socket_is_dead")
                await self._drop()
            try:
                self._line = await self._opened()
            except (Permanent, Temporary):
                pause = min(LONGEST_PAUSE_S, pause * 2) * random.uniform(0.7, 1.0)

    async def _opened(self) -> Line:
        line = Line(self._app, self._token, self._url)
        try:
            await line.open()
        except (Permanent, Temporary) as failed:
            self._trouble = str(failed)
            log.warning("slack_socket_not_opened", error=str(failed))
            await line.close()
            raise
        self._trouble = "Socket Mode: connecting"
        return line

    async def _drop(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.close()


class Line(AsyncSocketModeHandler):
    """One client with its signs of life. Keeps hold of the events under way, which the client does not."""

    def __init__(self, app: AsyncApp, app_token: str, api_url: str) -> None:
        self._web = AsyncWebClient(
            token=app_token, base_url=api_url, timeout=ANSWER_WITHIN_S, retry_handlers=[]
        )
        super().__init__(
            app, app_token, logger=_quiet_logger(), web_client=self._web, ping_interval=PING_EVERY_S
        )
        self.client: SocketModeClient
        self.client.on_message_listeners.append(self._heard)
        self._greeted_on: object | None = None
        self._last_sign = self._last_alive = time.monotonic()
        self._last_pong: float | None = None
        self._under_way: set[asyncio.Task[Any]] = set()
        self._connecting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Ask for the address here, so that a rejected token is seen, and leave the rest to the client."""
        self.client.wss_uri = await _answered(self._web)
        self._connecting = asyncio.create_task(self.client.connect())

    def broken(self, dead_after_s: float) -> bool:
        """Whether it is time for a new line: silent, or without a socket for longer than a reconnect takes.

        The client looks for a closed socket only every ten seconds, and tries a used-up address again and
        again.
        """
        now = time.monotonic()
        if self.alive(dead_after_s):
            self._last_alive = now
        return self.silent(dead_after_s) or now - self._last_alive > RECONNECT_WITHIN_S

    def alive(self, dead_after_s: float) -> bool:
        """Whether Slack has greeted us on the present socket and was heard lately."""
        session = self.client.current_session
        greeted = session is not None and session is self._greeted_on and not session.closed
        return greeted and not self.silent(dead_after_s)

    def silent(self, dead_after_s: float) -> bool:
        """A pong changes the client's own note of it; the first note is only of a ping that was sent."""
        pong = self.client.last_ping_pong_time
        if pong != self._last_pong:
            if self._last_pong is not None and pong is not None:
                self._last_sign = time.monotonic()
            self._last_pong = pong
        return time.monotonic() - self._last_sign > dead_after_s

    async def handle(self, client: SocketModeClient, req: SocketModeRequest) -> None:  # type: ignore[override]
        task = asyncio.current_task()
        if task is None:
            return
        self._under_way.add(task)
        try:
            if is_sound(req.payload):
                await super().handle(client, req)
            else:  # sending it again would not mend it
                log.warning("slack_request_unreadable", error="of no shape that we know")
                await client.send_socket_mode_response(SocketModeResponse(envelope_id=req.envelope_id))
        finally:
            self._under_way.discard(task)

    async def close(self) -> None:
        """Events that were stored are acknowledged on the socket that is about to close."""
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=GIVE_EVENTS_S)
        client = self.client
        tasks = [
            self._connecting,
            client.message_processor,
            client.current_session_monitor,
            client.message_receiver,
        ]
        client.closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        try:
            async with asyncio.timeout(GIVE_EVENTS_S):
                await client.close()
        except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError) as error:
            log.info("slack_socket_closed_badly", error=type(error).__name__)
        waiting = [task for task in tasks if task is not None]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await client.aiohttp_client_session.close()

    async def _heard(self, message: aiohttp.WSMessage) -> None:
        self._last_sign = time.monotonic()
        try:
            said = json.loads(message.data)
        except ValueError:
            return
        if isinstance(said, dict) and said.get("type") == "hello":
            self._greeted_on = self.client.current_session
            log.info("slack_socket_open", connections=said.get("num_connections"))
        if isinstance(said, dict) and said.get("type") == "disconnect":
            log.info("slack_socket_asked_to_reconnect", reason=str(said.get("reason"))[:60])


async def _answered(web: AsyncWebClient) -> str:
    method = "apps.connections.open"
    failed: Refusal
    try:
        answer = await web.api_call(method)
        return str(answer["url"])
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        failed = refusal(method, error, creates=False)
    except (ValueError, TypeError, AttributeError, KeyError) as error:  # an answer that is no JSON object
        failed = refusal(method, error, creates=False)
    raise failed


class _NoSecrets(logging.Filter):
    """The client logs addresses with their tickets, in tracebacks too."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = SECRETS.sub(r"\1…", record.getMessage()), ()
        record.exc_info = record.exc_text = None
        return True


def _quiet_logger() -> logging.Logger:
    logger = logging.getLogger("slack_socket_mode")
    if not any(isinstance(known, _NoSecrets) for known in logger.filters):
        logger.addFilter(_NoSecrets())
    return logger

"""Slack as the platform of the service: Socket Mode or events over HTTP in, the Web API out."""

from __future__ import annotations

import asyncio

from aiohttp import web
from slack_bolt.async_app import AsyncApp

from bot.compose.platform import Inside
from bot.compose.shared import build_pace
from bot.errors import Permanent, Rejected, Temporary, Unusable
from bot.settings import Settings
from bot.slack.api import SlackApi, web_client
from bot.slack.budget import Budget
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from bot.slack.http import slack_events_handler
from bot.slack.listen import slack_app
from bot.slack.methods import METHODS
from bot.slack.socket import SocketMode


class SlackPlatform:
    """One Slack installation."""

    card_interval_s: float | None = None

    def __init__(self, settings: Settings) -> None:
        self._env, section = settings.env, settings.file.slack
        if self._env.slack_bot_token is None:
            raise Unusable("SLACK_BOT_TOKEN is not set")
        token = self._env.slack_bot_token.get_secret_value()
        budget = Budget(factor=section.rate_factor, shared=build_pace(settings, token))
        self._connection = Connection(SlackApi(web_client(token, self._env.slack_api_url), budget))
        self.chat = SlackChat(self._connection, link_hosts=frozenset(section.link_hosts))
        self.responders = frozenset(section.responders)
        self._app: AsyncApp | None = None
        self._socket: SocketMode | None = None
        self._asking: asyncio.Task[None] | None = None

    def open(self, inside: Inside) -> None:
        """Build the app, and the socket where there is a token for it."""
        inside.measures.expect_slack_calls(METHODS)
        self._connection.api.called = inside.measures.slack_called
        self._app = slack_app(
            accept=inside.accept, connection=self._connection, signing_secret=self._signing_secret
        )
        if self._env.slack_app_token is not None:
            token = self._env.slack_app_token.get_secret_value()
            self._socket = SocketMode(self._app, token, self._env.slack_api_url)

    def add_routes(self, app: web.Application) -> None:
        """Events come over HTTP where no socket brings them."""
        if self._socket is None and self._app is not None:
            handler = slack_events_handler(self._app, signing_secret=self._signing_secret)
            app.router.add_post("/slack/events", handler)

    async def connect(self) -> None:
        """Find out who we are, and open the socket."""
        try:
            await self._connection.connect()
        except Permanent as error:
            raise _rejected("SLACK_BOT_TOKEN", error) from None
        if self._asking is None:
            self._asking = asyncio.create_task(self._connection.keep_asking(), name="slack-health")
        if self._socket is not None:
            try:
                await self._socket.start()
            except Permanent as error:
                raise _rejected("SLACK_APP_TOKEN", error) from None

    def reasons(self) -> list[str]:
        """Why no event can come in, or nothing can go out."""
        if self._connection.identity is None:
            return [self._connection.reason]
        unsent = self._connection.api.health.reason
        unheard = "" if self._socket is None or self._socket.connected else self._socket.reason
        return [reason for reason in (unsent, unheard) if reason]

    async def close(self) -> None:
        """Close the socket."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()

    @property
    def _signing_secret(self) -> str:
        secret = self._env.slack_signing_secret
        return secret.get_secret_value() if secret else ""


def _rejected(variable: str, error: Permanent) -> Exception:
    if isinstance(error, Rejected):
        return Unusable(
            f"{variable}: Slack rejects the token ({error.code}); copy it anew from the app's settings"
        )
    return Temporary(str(error))

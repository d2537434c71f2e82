"""The test Slack: a real HTTP and WebSocket server on 127.0.0.1 that holds one workspace."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.servers.slack.api import APP_TOKEN, BOT_TOKEN, Api
from tests.servers.slack.laws import Laws
from tests.servers.slack.people import People
from tests.servers.slack.state import Mentions, State
from tests.servers.slack.trouble import Trouble
from tests.servers.slack.uploads import Uploads
from tests.servers.slack.workspace import BOT_USER, TEAM, Channel, User, Workspace

HOST = "127.0.0.1"
SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
REAL_DELAYS = (0.0, 60.0, 300.0)


class SlackServer(People, Laws, Trouble):
    """`async with SlackServer() as slack:`; see the mixed-in classes for what it can do."""

    bot_token = BOT_TOKEN
    app_token = APP_TOKEN
    team_id = TEAM
    bot_user_id = BOT_USER

    def __init__(
        self,
        *,
        rate_scale: float | None = None,
        retry_delays: Sequence[float] = REAL_DELAYS,
        ack_timeout: float = 3.0,
        port: int = 0,
        signing_secret: str = SIGNING_SECRET,
    ) -> None:
        self.state = State(
            rate_scale=rate_scale,
            retry_delays=retry_delays,
            ack_timeout=ack_timeout,
            signing_secret=signing_secret,
        )
        self.port = port
        self._unavailable = False
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    @property
    def url(self) -> str:
        return self.state.url

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/"

    @property
    def signing_secret(self) -> str:
        return self.state.http.signing_secret

    @property
    def http_events_url(self) -> str | None:
        """Set it and events and interactions are POSTed there instead of sent over sockets."""
        return self.state.http.url

    @http_events_url.setter
    def http_events_url(self, url: str | None) -> None:
        self.state.http.url = url

    @property
    def workspace(self) -> Workspace:
        return self.state.workspace

    @property
    def scopes(self) -> set[str]:
        return self.state.scopes

    @property
    def subscriptions(self) -> set[str]:
        return self.state.subscriptions

    @property
    def mentions(self) -> Mentions:
        """Which events a mention fires, and in which order."""
        return self.state.mentions

    @mentions.setter
    def mentions(self, mentions: Mentions) -> None:
        self.state.mentions = mentions

    @property
    def file_processing_s(self) -> float:
        """How long after its upload an image still cannot be shown, as Slack digests it."""
        return self.state.file_processing_s

    @file_processing_s.setter
    def file_processing_s(self, seconds: float) -> None:
        self.state.file_processing_s = seconds

    @property
    def open_sockets(self) -> int:
        return len(self.state.sockets.open)

    def add_user(self, user: User, *channels: str) -> User:
        """Somebody new, and the channels they are in."""
        for name in channels:
            self.workspace.channel(name).members.add(user.id)
        return self.workspace.add_user(user)

    def add_channel(self, channel: Channel) -> Channel:
        return self.workspace.add_channel(channel)

    async def verify_url(self) -> bool:
        """Whether the app answers Slack's url_verification challenge."""
        return await self.state.http.verify_url("legacy-verification-token")

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        await self.state.events.stop()
        await self.state.http.stop()
        await self.down()

    async def up(self) -> None:
        """Listen; after `down()` on the same port, with all that was there."""
        self._unavailable = False
        if self._runner is not None:
            return
        self._runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, HOST, self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]
        self.state.url = f"http://{HOST}:{self.port}"

    async def down(self, *, refuse: bool = True) -> None:
        """Out of reach: connections are refused and open ones end, or with `refuse=False` all is 503."""
        if not refuse:
            self._unavailable = True
            return
        if self._runner is not None:
            runner, self._runner = self._runner, None
            self.state.sockets.cut()
            await runner.cleanup()

    def _app(self) -> web.Application:
        api, uploads = Api(self.state), Uploads(self.state)
        app = web.Application(middlewares=[self._reachable], client_max_size=64 * 1024**2)
        app.router.add_route("*", "/api/{method}", api.handle)
        app.router.add_get("/link/", self.state.sockets.handle)
        app.router.add_route("*", "/upload/v1/{ticket}", uploads.upload)
        app.router.add_get("/files/{file}/{name}", uploads.download)
        app.router.add_post("/actions/{id}", uploads.respond)
        return app

    @web.middleware
    async def _reachable(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._unavailable:
            return web.Response(status=503, text="service unavailable")
        return await handler(request)

"""The HTTP side of one process: whether it lives and can work, its numbers, and events in HTTP mode."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import hdrs, web
from prometheus_client.exposition import choose_encoder

from bot.errors import Unusable
from bot.measures import Measures
from bot.web.listening import BACKLOG, why_not

log = structlog.get_logger()

Reasons = Callable[[], list[str]]
"""Why this process cannot work now, one line each; empty when it can."""

Refresh = Callable[[], Awaitable[None]]
"""Brings numbers up to date that are only known when they are asked for; returns soon, whatever happens."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LARGEST_BODY = 1_048_576  # Slack's events and Alertmanager's groups stay far below
SHUTDOWN_S = 5.0  # an open request may end, a probe that never does may not hold us


def make_app(
    *,
    reasons: Reasons,
    measures: Measures,
    refresh: Refresh,
    add_routes: Callable[[web.Application], None] = lambda _: None,
) -> web.Application:
    """The application; `add_routes` adds what the platform serves."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_: web.Request) -> web.Response:
        why = reasons()
        return web.json_response({"ready": not why, "reasons": why}, status=503 if why else 200)

    async def show_metrics(request: web.Request) -> web.Response:
        measures.ready(not reasons())
        await refresh()
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(measures.registry), headers={hdrs.CONTENT_TYPE: content_type})

    app = web.Application(client_max_size=LARGEST_BODY, middlewares=[_faults_say_nothing])
    app.on_response_prepare.append(_without_server_header)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show_metrics)
    add_routes(app)
    return app


@web.middleware
async def _faults_say_nothing(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A fault of ours is logged here and told to nobody outside."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception:
        log.exception("request_failed", method=request.method, path=request.path)
        return web.json_response({"error": "internal"}, status=500)


async def _without_server_header(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)


class Server:
    """A listening application. Start it with `Server.start`, close it when done."""

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner

    @classmethod
    async def start(
        cls, app: web.Application, *, host: str, port: int, listener: socket.socket | None = None
    ) -> Server:
        """Listen, on `listener` where one is given; raises Unusable with the mend."""
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            if listener:
                site: web.BaseSite = web.SockSite(runner, listener, backlog=BACKLOG)
            else:
                site = web.TCPSite(runner, host, port, backlog=BACKLOG)
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise Unusable(why_not(error, host, port)) from None
        return cls(runner)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port, *_ = self._runner.addresses[0]
        return host, port

    async def close(self) -> None:
        """Stop listening; open requests get a moment to end."""
        await self._runner.cleanup()

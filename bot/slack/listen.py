"""The Bolt app: whatever Slack sends is stored first and acknowledged then.

Bolt acknowledges an event before it runs a listener and drops the listener's task, so there are no
listeners: one global middleware stores and answers. It answers everything that is verified and for us,
because an event without a listener would be a 404 and come three times more. Anything but a 200 is an error
for Slack over HTTP and no acknowledgement in Socket Mode, and Slack sends the event again: at once, after a
minute, after five. (Read in slack_bolt 1.30: app/async_app.py, listener/asyncio_runner.py,
adapter/socket_mode/async_internals.py.)
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import structlog
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.ports import Accept
from bot.slack.connect import Connection
from bot.slack.identity import Identity
from bot.slack.parse import parse, team_of
from core.arrivals import Arrival

log = structlog.get_logger()

Next: TypeAlias = Callable[[], Awaitable[Any]]


def slack_app(*, accept: Accept, connection: Connection, signing_secret: str = "") -> AsyncApp:
    """The app for both ways in. Its own client has no token: Bolt must not call anything by itself."""

    async def before_authorize(body: dict[str, Any], next: Next) -> BoltResponse | None:
        """Nothing comes in before we know who we are, but Slack may test the address."""
        if connection.identity is None and body.get("type") != "url_verification":
            return BoltResponse(status=503, body="")
        await next()
        return None

    async def authorize() -> AuthorizeResult:
        us = connection.us
        return AuthorizeResult(
            enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user_id, bot_id=us.bot_id
        )

    async def store(req: AsyncBoltRequest) -> BoltResponse:
        return await stored(req, accept, connection.us)

    app = AsyncApp(
        name="watchkeeper",
        logger=_bolts_logger(),
        client=AsyncWebClient(retry_handlers=[]),
        signing_secret=signing_secret,
        before_authorize=before_authorize,
        authorize=authorize,
        process_before_response=True,
        # Parsing leaves our own messages out; Bolt would also swallow the deletion of one of ours.
        ignoring_self_events_enabled=False,
    )
    app.middleware(store)
    return app


def _bolts_logger() -> logging.Logger:
    """Errors only: Bolt warns that it ignores SLACK_BOT_TOKEN, which is just what we want."""
    logger = logging.getLogger("slack_bolt.watchkeeper")
    logger.setLevel(logging.ERROR)
    return logger


async def stored(req: AsyncBoltRequest, accept: Accept, us: Identity) -> BoltResponse:
    """Store what the request says, if it says anything to us, and only then call it received."""
    body = req.body
    if not _is_for(us, body):
        log.warning("slack_event_of_another_workspace", team=team_of(body), type=str(body.get("type"))[:40])
        return BoltResponse(status=200, body="")
    incoming = parse(body, us)
    if incoming is None:
        return BoltResponse(status=200, body="")
    try:
        await accept(incoming)
    except Exception as error:  # noqa: BLE001 (whatever went wrong, Slack must send it again)
        log.error(
            "slack_event_not_stored", key=incoming.key, error=type(error).__name__, detail=str(error)[:300]
        )
        return BoltResponse(status=500, body="")
    source = incoming.source.value if isinstance(incoming, Arrival) else type(incoming).__name__.lower()
    log.debug("slack_event_stored", key=incoming.key, source=source)
    return BoltResponse(status=200, body="")


def _is_for(us: Identity, body: dict[str, Any]) -> bool:
    """We hold one workspace's token; of another workspace we could neither answer nor judge anybody."""
    if body.get("type") != "event_callback":
        return True
    team = team_of(body)
    return not team or team in {us.team, us.enterprise}

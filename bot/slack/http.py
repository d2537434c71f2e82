"""`POST /slack/events`: the signature is verified over the raw bytes before anything reads them.

Form: docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier

from bot.errors import Unusable
from bot.slack.payload import is_sound

log = structlog.get_logger()

LARGEST_BODY = 1_000_000
LONGEST_TIMESTAMP = 12

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def slack_events_handler(app: AsyncApp, *, signing_secret: str) -> Handler:
    """The handler for bot.web to mount. Refuses to exist without a secret."""
    if not signing_secret.strip():
        raise Unusable("SLACK_SIGNING_SECRET is empty: events over HTTP need the app's signing secret")
    verifier = SignatureVerifier(signing_secret)

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return web.Response(status=415)
        raw = await _body(request)
        if raw is None:
            return web.Response(status=413)
        text = _verified(raw, request, verifier)
        if text is None:
            log.warning("slack_request_refused", peer=request.remote)
            return web.Response(status=401)
        return await _dispatched(app, request, text)

    return handle


async def _body(request: web.Request) -> bytes | None:
    """The body, or None as soon as it is too large."""
    if (request.content_length or 0) > LARGEST_BODY:
        return None
    raw = bytearray()
    async for chunk in request.content.iter_any():
        raw += chunk
        if len(raw) > LARGEST_BODY:
            return None
    return bytes(raw)


def _verified(raw: bytes, request: web.Request, verifier: SignatureVerifier) -> str | None:
    """The body as text if Slack signed it within five minutes.

    The verifier raises on a timestamp that is no number and on a signature that is not ASCII, hence the
    guards.
    """
    timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
    signature = request.headers.get("X-Slack-Signature", "")
    is_number = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= LONGEST_TIMESTAMP
    if not is_number or not signature.isascii():
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if verifier.is_valid(text, timestamp, signature) else None


async def _dispatched(app: AsyncApp, request: web.Request, text: str) -> web.StreamResponse:
    headers: dict[str, str | Sequence[str]] = dict(request.headers.items())
    try:
        bolt_request = AsyncBoltRequest(body=text, query=request.query_string, headers=headers)
    except Exception as error:  # noqa: BLE001 (Slack signed it, and still it is nothing that can be read)
        log.warning("slack_request_unreadable", error=type(error).__name__)
        return web.Response(status=200)  # sending it again would not mend it
    if not is_sound(bolt_request.body):
        log.warning("slack_request_unreadable", error="of no shape that we know")
        return web.Response(status=200)
    return await to_aiohttp_response(await app.async_dispatch(bolt_request))

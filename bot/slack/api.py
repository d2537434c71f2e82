"""One door to Slack's Web API: waits for the budget, sends, and sorts every failure into our errors."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import Limited, OutcomeUnknown, Permanent, Rejected, Temporary
from bot.slack.budget import Budget, Priority
from bot.slack.health import Health
from bot.slack.methods import METHODS, Form
from bot.slack.refusals import Refusal, refusal
from core.history import Json

SLACKS_API = "https://slack.com/api/"
ANSWER_WITHIN_S = 10
MOST_PAGES = 25

OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (Limited, "rate_limited"),
    (OutcomeUnknown, "unknown"),
    (Temporary, "unavailable"),
    (Rejected, "rejected"),
    (Permanent, "refused"),
)
"""How a call that failed is counted: the first kind that it is."""


def web_client(token: str, api_url: str | None = None) -> AsyncWebClient:
    """A client that never repeats a call by itself: the default one posts twice after a lost connection.

    Must be made inside the running loop; `SlackApi.close` closes its session.
    """
    limit = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    return AsyncWebClient(
        token=token,
        base_url=api_url or SLACKS_API,
        timeout=ANSWER_WITHIN_S,
        session=aiohttp.ClientSession(timeout=limit, connector=aiohttp.TCPConnector(socket_factory=_socket)),
        retry_handlers=[],
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that gives up what was not taken within the time that we wait for an answer.

    Else the system goes on sending after we have closed it, and a post arrives when nobody looks for it.
    https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_USER_TIMEOUT)
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(ANSWER_WITHIN_S * 1000))
    return made


class SlackApi:
    """The Web API of one workspace."""

    def __init__(self, client: AsyncWebClient, budget: Budget | None = None) -> None:
        self.client = client
        self.health = Health()
        self.called: Callable[[str, str], None] = lambda method, outcome: None  # counts what was sent
        self._budget = budget or Budget()

    async def turn(self, method: str, priority: Priority, channel: str) -> None:
        """Wait for one call's share of the budget, for a caller that then sends what is newest."""
        await self._budget.turn(method, priority, channel)

    async def call(self, method: str, priority: Priority = Priority.POST, /, **args: Json) -> dict[str, Json]:
        """Call a method, leaving out arguments that are None. Every failure is one of ours (bot.errors)."""
        await self._budget.turn(method, priority, args.get("channel"))
        return await self.send(method, **args)

    async def send(self, method: str, /, **args: Json) -> dict[str, Json]:
        """As `call`, for a caller that has waited for its turn."""
        if (left := self._budget.rests_for(method)) > 0:
            raise Temporary(f"{method}: resting as Slack asked", left)
        self.health.ask()
        given = {name: value for name, value in args.items() if value is not None}
        try:
            answer = await self._send(method, given)
            self.health.worked(method)
            self.called(method, "ok")
            return answer
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = refusal(method, error, creates=METHODS[method].creates)
        except (ValueError, TypeError, AttributeError) as error:  # an answer that is no JSON object
            failed = refusal(method, error, creates=METHODS[method].creates)
        self.health.failed(method, failed)
        self.called(method, outcome_of(failed))
        if isinstance(failed, Limited) and failed.retry_after_s is not None:
            self._budget.rest(method, failed.retry_after_s)
        raise failed

    async def pages(
        self, method: str, name: str, /, most: int = MOST_PAGES, **args: Json
    ) -> list[dict[str, Json]]:
        """All objects of a list that comes in pages, at most `most` pages."""
        found: list[dict[str, Json]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            answer = await self.call(method, cursor=cursor, **args)
            listed = answer.get(name)
            found += [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
        return found

    async def upload(self, url: str, content: bytes) -> None:
        """The second step of an upload: the bytes go to the address that Slack named."""
        limit = aiohttp.ClientTimeout(total=3 * ANSWER_WITHIN_S)
        try:
            async with self._session().post(url, data=content, timeout=limit) as answer:
                if answer.status != 200:
                    raise Temporary(f"upload: HTTP {answer.status}")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Temporary(f"upload: {type(error).__name__}") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._budget.close()
        if self.client.session is not None:
            await self.client.session.close()

    def _session(self) -> aiohttp.ClientSession:
        if self.client.session is None or self.client.session.closed:
            raise Temporary("upload: the client is closed")
        return self.client.session

    async def _send(self, method: str, args: dict[str, Json]) -> dict[str, Json]:
        match METHODS[method].form:
            case Form.JSON:
                answer = await self.client.api_call(method, json=args)
            case Form.QUERY:
                answer = await self.client.api_call(method, params=_flat(args))
            case Form.GET:
                answer = await self.client.api_call(method, http_verb="GET", params=_flat(args))
        if not isinstance(answer.data, dict):
            raise ValueError(method)
        scopes = {name.lower(): value for name, value in answer.headers.items()}.get("x-oauth-scopes", "")
        return {**answer.data, "_scopes": scopes}


def outcome_of(failed: Refusal) -> str:
    """How this failure is counted."""
    return next(outcome for kind, outcome in OUTCOMES if isinstance(failed, kind))


def _flat(args: dict[str, Json]) -> dict[str, str]:
    """Arguments of a query: values that are no text travel as JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in args.items()}

"""Loki's HTTP API, and what its refusals mean: https://grafana.com/docs/loki/latest/reference/loki-http-api/"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from bot.tools.bodies import TooLarge, whole
from bot.tools.clean import one_line

LARGEST_ANSWER = 32_000_000  # bytes
CONNECT_S = 5.0


class Refused(Exception):
    """Loki answered with an error, or not at all. The message tells the model what to try; `fact` is bare."""

    def __init__(self, message: str, fact: str = "") -> None:
        super().__init__(message)
        self.fact = fact or message


class LogsApi:
    """One Loki, seen as one tenant. Opens its connections on first use."""

    def __init__(self, url: str, org: str | None = None, connect_s: float | None = CONNECT_S) -> None:
        self._url = url.rstrip("/")
        self._headers = {"X-Scope-OrgID": org} if org else {}
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        self._http: aiohttp.ClientSession | None = None

    async def range(self, parameters: Mapping[str, str]) -> Any:
        """The `data` of a range query: streams or a matrix."""
        return await self._get("query_range", parameters)

    async def labels(self, parameters: Mapping[str, str]) -> list[str]:
        """The names of the labels."""
        return _texts(await self._get("labels", parameters))

    async def values(self, label: str, parameters: Mapping[str, str]) -> list[str]:
        """The values of one label."""
        return _texts(await self._get(f"label/{quote(label, safe='')}/values", parameters))

    async def close(self) -> None:
        """Give back the connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _get(self, path: str, parameters: Mapping[str, str]) -> Any:
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=self._limits, trust_env=False, headers=self._headers)
        try:
            async with self._http.get(
                f"{self._url}/loki/api/v1/{path}", params=parameters, allow_redirects=False
            ) as response:
                body = await whole(response, LARGEST_ANSWER)
                status = response.status
        except TooLarge:
            raise Refused(
                f"the answer is larger than {LARGEST_ANSWER // 1_000_000} MB; use a smaller limit, a filter "
                "(|= or |~), or a shorter range"
            ) from None
        except aiohttp.ClientError as error:
            words = one_line(str(error)) or type(error).__name__
            message = f"the logs cannot be reached: {words}; go on without them and say so"
            raise Refused(message, fact=f"cannot be reached: {words}") from error
        return _data(body, status)


def _texts(data: Any) -> list[str]:
    """Loki leaves `data` out when there is nothing."""
    return sorted(str(each) for each in data) if isinstance(data, list) else []


def _data(body: bytes, status: int) -> Any:
    """Errors are plain text, or JSON behind some gateways."""
    text = body[:4_000].decode(errors="replace")
    if status != 200:
        message = one_line(_message(text), 600)
        raise Refused(_advice(status, message), fact=f"HTTP {status}: {message}")
    try:
        answer = json.loads(body)
        if answer["status"] == "success":
            return answer.get("data")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"that is no answer of Loki's API: {one_line(text)}") from error
    raise Refused(f"Loki refused: {one_line(text)}")


def _message(text: str) -> str:
    try:
        answer = json.loads(text)
        return str(answer.get("error") or answer.get("message") or text)
    except (ValueError, AttributeError):
        return text


def _advice(status: int, message: str) -> str:
    """Loki's own words, and what to try instead."""
    lower = message.lower()
    if "at least one" in lower and "matcher" in lower:
        return f'{message}. Name at least one label with a value, like {{app="x"}}; logs_labels lists them.'
    if "parse error" in lower:
        found = re.search(r"parse error at line (\d+), col (\d+): (.*)", message)
        where = f"at line {found[1]}, character {found[2]}: {found[3]}" if found else message
        return (
            f"the query does not parse: {where}. LogQL begins with a selector, then filters: "
            '{app="checkout"} |= "error" | json. Correct it and ask again.'
        )
    if "no org id" in lower or status in (401, 403):
        return (
            f"Loki refuses us ({message or status}); a person has to set org, or user and password in url, "
            "in [tools.logs]. Go on without logs and say so."
        )
    if "time range exceeds" in lower or "max query length" in lower:
        return f"the range is too long: {message}. Use a shorter one."
    if "max entries limit" in lower:
        return f"too many lines asked for: {message}. Use a smaller limit."
    if "pipeline error" in lower:
        return f'{message}. Add | __error__="" after the parser to leave out lines that do not fit it.'
    return _by_status(status, message)


def _by_status(status: int, message: str) -> str:
    if status == 429 or "too many outstanding" in message:
        return f"Loki is asked too much at the moment: {message}. Narrow the selector and ask again later."
    if status == 404:
        return "that address serves no Loki API (HTTP 404); a person has to correct url in [tools.logs]."
    if status >= 500:
        return f"Loki failed (HTTP {status}): {message}. Narrow the selector or shorten the range."
    return f"Loki refused (HTTP {status}): {message}"

"""The HTTP API of Prometheus, and what its refusals mean: https://prometheus.io/docs/prometheus/latest/querying/api/"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import aiohttp

from bot.tools.bodies import TooLarge, whole
from bot.tools.clean import one_line

LARGEST_ANSWER = 32_000_000  # bytes; what is more is not worth reading
CONNECT_S = 5.0


class Refused(Exception):
    """Prometheus answered with an error, or not at all. The message tells the model what to try."""


class PrometheusApi:
    """One Prometheus server. Opens its connections on first use."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._http: aiohttp.ClientSession | None = None

    async def get(self, path: str, parameters: Mapping[str, str | list[str]] | None = None) -> Any:
        """The `data` of an answer. Queries go in the body, because they may be long."""
        if self._http is None:
            limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
            self._http = aiohttp.ClientSession(timeout=limits, trust_env=False)
        query = path in ("query", "query_range")
        pairs = [(key, each) for key, value in (parameters or {}).items() for each in _each(value)]
        try:
            async with self._http.request(
                "POST" if query else "GET",
                f"{self._url}/api/v1/{path}",
                params=None if query else pairs,
                data=aiohttp.FormData(pairs) if query else None,
            ) as response:
                body = await whole(response, LARGEST_ANSWER)
                status = response.status
        except TooLarge:
            raise Refused(
                f"the answer is larger than {LARGEST_ANSWER // 1_000_000} MB; "
                "aggregate (sum by, topk), narrow the labels, or use a larger step"
            ) from None
        except aiohttp.ClientError as error:
            raise Refused(
                f"Prometheus cannot be reached: {one_line(str(error)) or type(error).__name__}"
            ) from error
        return _data(body, status)

    async def close(self) -> None:
        """Give back the connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None


def _each(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _data(body: bytes, status: int) -> Any:
    try:
        answer = json.loads(body)
        if answer["status"] == "success":
            return answer["data"]
        kind, message = str(answer.get("errorType", "")), str(answer.get("error", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = one_line(body[:500].decode(errors="replace"))
        raise Refused(f"Prometheus answered HTTP {status} and no JSON of its API: {text}") from error
    raise Refused(_advice(kind, one_line(message, 600)))


def _advice(kind: str, message: str) -> str:
    """Prometheus' own words (they hold the position of a parse error), and what to try instead."""
    if "exceeded maximum resolution" in message:
        return f"too many points: {message} Use a larger step or a shorter range."
    if "parse error" in message:
        return f"the query does not parse: {_placed(message)}. Correct it and ask again."
    if kind == "timeout" or "query timed out" in message:
        return (
            f"the query took too long: {message}. Narrow the labels, shorten the range, or aggregate earlier."
        )
    if "too many samples" in message:
        return f"the query touches too many samples: {message}. Narrow the labels or shorten the range."
    if "many-to-many" in message or "duplicate" in message:
        return (
            f"the query cannot be evaluated: {message}. Use on(…)/ignoring(…) with group_left, or aggregate."
        )
    return f"Prometheus refused ({kind or 'error'}): {message}"


def _placed(message: str) -> str:
    """`1:9: parse error: …` says line and character; said in words."""
    found = re.search(r"(\d+):(\d+): parse error: (.*)", message)
    return f"at line {found[1]}, character {found[2]}: {found[3]}" if found else message

"""The HTTP probe (`[tools.http] hosts = […]`): how a listed host answers, how fast, how certified."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from urllib.parse import urljoin

from bot.tools.clean import one_line
from bot.tools.http_address import Allowed, NotAllowed
from bot.tools.http_certificate import now
from bot.tools.http_fetch import Answer, Fetcher, Resolve, Unreachable
from bot.tools.prometheus_time import iso
from bot.tools.provider import CallContext, ToolOutput
from bot.tools.specs import reader
from core.history import Json
from core.tools import ToolSpec

PROBE = "http_probe"
MOST_REDIRECTS = 3
LONGEST_TEXT = 2_000  # characters of the body
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SHOWN = (
    "content-type", "content-length", "date", "server", "location", "cache-control", "age", "retry-after",
    "via", "x-cache", "x-served-by", "x-request-id", "www-authenticate", "allow", "strict-transport-security",
)  # fmt: skip


class HttpProvider:
    """A `Provider` for the hosts of an allow-list."""

    name = "http"

    def __init__(
        self,
        hosts: Iterable[str],
        networks: Iterable[str] = (),
        timeout_s: float = 20.0,
        *,
        resolve: Resolve | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = tuple(hosts)
        self._allowed = Allowed(self._hosts, networks)
        self._fetcher = Fetcher(self._allowed, resolve, trust)
        self._spec = _spec(self._hosts, timeout_s)

    async def start(self) -> None:
        """Nothing to do: nothing is kept open."""

    async def ready(self, deadline: float) -> str | None:
        """Always: whether a host answers is what the tool is for."""
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """The one tool."""
        return (self._spec,)

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Ask, and follow up to three redirects, each checked like the first; a cancelled probe hangs up."""
        method, url = str(arguments.get("method", "GET")), str(arguments["url"]).strip()
        query, asked = one_line(f"{method} {url}", 300), iso(now())
        told: list[str] = []
        for hop in range(MOST_REDIRECTS + 1):
            try:
                answer = Answer(self._allowed.target(url))
                await self._fetcher.fetch(method, answer)
            except NotAllowed as refusal:
                if not hop:
                    return ToolOutput(str(refusal), is_error=True, query=query)
                told.append(f"the redirect was not followed: {refusal}")
                break
            except Unreachable as fault:
                told += [f"{method} {answer.target.url}: no answer", str(fault), *_measured(answer)]
                break
            told += _words(method, answer)
            context.progress("\n".join(told))
            following = _location(answer)
            if following is None:
                break
            if hop == MOST_REDIRECTS:
                told.append(f"{MOST_REDIRECTS} redirects were followed; this one was not")
            url = following
        return ToolOutput("\n".join(told), query=query, time_range=asked)

    async def close(self) -> None:
        """Nothing to give back."""


def _spec(hosts: Sequence[str], timeout_s: float) -> ToolSpec:
    return reader(
        PROBE,
        timeout_s,
        "Ask a host over HTTP now: status, time for DNS, connect, TLS and first byte, expiry and issuer of "
        "its certificate, some headers, the beginning of a text. Follows up to 3 redirects. Only these: "
        + ", ".join(hosts[:30]),
        ["url"],
        url={"type": "string", "minLength": 1, "description": "http:// or https:// URL of one of the hosts."},
        method={"type": "string", "enum": ["GET", "HEAD"], "description": "Default GET."},
    )


def _location(answer: Answer) -> str | None:
    """Where a redirect leads; its fragment is not sent."""
    if answer.status not in REDIRECTS:
        return None
    found = next((value for name, value in answer.headers if name == "location"), None)
    try:
        return None if not found else urljoin(answer.target.url, found.strip()).partition("#")[0]
    except ValueError:
        return f"{found}"  # the check will refuse it


def _words(method: str, answer: Answer) -> list[str]:
    told = [f"{method} {answer.target.url}: {answer.status} {one_line(answer.reason, 60)}".rstrip()]
    told += _measured(answer)
    told += [f"{name}: {one_line(value, 200)}" for name, value in answer.headers if name in SHOWN]
    if answer.body:
        told.append(_body(answer))
    return told


def _measured(answer: Answer) -> list[str]:
    total = sum(answer.times.values())
    steps = ", ".join(f"{step} {seconds * 1e3:.0f} ms" for step, seconds in answer.times.items())
    told = [f"from {answer.address or 'nowhere'}: {steps or 'nothing measured'}, total {total * 1e3:.0f} ms"]
    if answer.certificate is not None:
        told.append(f"certificate ({answer.tls}): {answer.certificate.words(now())}")
    return told


def _body(answer: Answer) -> str:
    kind = next((value for name, value in answer.headers if name == "content-type"), "").lower()
    more = "at least " if answer.cut else ""
    size = f"{more}{len(answer.body)} bytes"
    if b"\0" in answer.body[:1_024] or kind.startswith(("image/", "audio/", "video/", "font/")):
        return f"body: {size}, not text"
    text = answer.body.decode("utf-8", errors="replace")
    left = f"\n[{len(text) - LONGEST_TEXT} more characters]" if len(text) > LONGEST_TEXT else ""
    return f"body, {size}:\n{text[:LONGEST_TEXT]}{left}"

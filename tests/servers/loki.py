"""A small Loki: the documented HTTP API over lines in memory, as strict as the real one.

https://grafana.com/docs/loki/latest/reference/loki-http-api/ It understands selectors, line filters,
`| json`, `| logfmt`, and `sum by (…) (count_over_time(… [Ns]))` or `rate` over them. Errors are plain text.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

MOST_LINES = 5_000
LONGEST_RANGE_S = 721 * 3_600
MATCHER = re.compile(r'\s*([A-Za-z_]\w*)\s*(=~|!=|!~|=)\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)\s*')
FILTER = re.compile(r'\s*(\|=|!=|\|~|!~)\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)')
STAGE = re.compile(r"\s*\|\s*(?:json|logfmt)")
METRIC = re.compile(
    r"(?:sum\s*(?:by\s*\(([^)]*)\)\s*)?\(\s*)?(count_over_time|rate)\s*\((.*)\[(\d+)(s|m|h)\]\s*\)(\s*\))?\s*",
    re.DOTALL,
)

Test = Callable[[str], bool]


class Bad(Exception):
    """A request that Loki refuses."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Stream:
    """Labels, and lines by nanoseconds."""

    labels: Mapping[str, str]
    lines: list[tuple[int, str]] = field(default_factory=list)


class LokiServer:
    """Use as a context. `push` gives it lines; `org`, `metrics` and `hold` make it behave otherwise."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.org: str | None = None
        self.metrics = True
        self.hold: asyncio.Event | None = None
        self.fails: tuple[int, str] | None = None
        self.broken_off = asyncio.Event()
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._runner: web.AppRunner | None = None
        self.url = ""

    def push(self, labels: Mapping[str, str], *lines: tuple[float, str]) -> None:
        """Add lines at epoch seconds."""
        stream = next((each for each in self.streams if each.labels == labels), None)
        if stream is None:
            self.streams.append(stream := Stream(dict(labels)))
        stream.lines += [(int(at * 1e6) * 1_000, text) for at, text in lines]
        stream.lines.sort()

    async def __aenter__(self) -> LokiServer:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/loki/api/v1/query_range", self._range)
        app.router.add_get("/loki/api/v1/labels", self._labels)
        app.router.add_get("/loki/api/v1/label/{name}/values", self._values)
        self._runner = web.AppRunner(app, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.path, dict(request.query)))
        if self.org is not None and request.headers.get("X-Scope-OrgID") != self.org:
            return web.Response(status=401, text="no org id\n")
        if self.fails is not None:
            return web.Response(status=self.fails[0], text=self.fails[1])
        try:
            if self.hold is not None:
                await self.hold.wait()
            answer: web.StreamResponse = await handler(request)
        except asyncio.CancelledError:
            self.broken_off.set()
            raise
        except Bad as bad:
            return web.Response(status=bad.status, text=f"{bad}\n")
        return answer

    async def _range(self, request: web.Request) -> web.Response:
        query = request.query.get("query", "")
        start, end = bounds(request.query, 3_600)
        if end < start:
            raise Bad("end timestamp must not be before or equal to start time")
        if (end - start) / 1e9 > LONGEST_RANGE_S:
            raise Bad(f"the query time range exceeds the limit (query length: {(end - start) / 3.6e12:.0f}h)")
        if metric := METRIC.fullmatch(query.strip()):
            if not self.metrics:
                raise Bad("parse error at line 1, col 1: syntax error: unexpected IDENTIFIER")
            return answer("matrix", self._matrix(metric, start, end, float(request.query.get("step", "60"))))
        limit = number(request.query.get("limit", "100"), "limit")
        if limit > MOST_LINES:
            raise Bad(
                f"max entries limit per query exceeded, limit > max_entries_limit ({limit} > {MOST_LINES})"
            )
        direction = request.query.get("direction", "backward").lower()
        if direction not in ("forward", "backward"):
            raise Bad(f"invalid direction '{direction}'")
        found = [(at, text, labels) for labels, at, text in self._matching(query, start, end)]
        found.sort(key=lambda line: line[0], reverse=direction == "backward")
        grouped: dict[tuple[tuple[str, str], ...], list[list[str]]] = defaultdict(list)
        for at, text, labels in found[:limit]:
            grouped[tuple(labels.items())].append([str(at), text])
        return answer("streams", [{"stream": dict(key), "values": values} for key, values in grouped.items()])

    def _matrix(self, metric: re.Match[str], start: int, end: int, step: float) -> list[dict[str, Any]]:
        by, kind, inner, width, unit = metric.group(1, 2, 3, 4, 5)
        window = int(width) * {"s": 1, "m": 60, "h": 3_600}[unit]
        keep = [label.strip() for label in by.split(",")] if by else []
        summed = metric[0].startswith("sum")
        lines = self._matching(inner, start - int(window * 1e9), end + 1)
        groups: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
        for labels, at, _ in lines:
            kept = {k: v for k, v in labels.items() if k in keep or not summed}
            groups[tuple(sorted(kept.items()))].append(at)
        result = []
        for key, times in groups.items():
            values, at = [], start
            while at <= end:
                count = sum(at - window * 1e9 < each <= at for each in times)
                if count:
                    values.append([at / 1e9, str(count / window if kind == "rate" else count)])
                at += int(step * 1e9)
            result.append({"metric": dict(key), "values": values})
        return result

    async def _labels(self, request: web.Request) -> web.Response:
        names = {name for stream in self._selected(request) for name in stream.labels}
        return listed(names)

    async def _values(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return listed({stream.labels[name] for stream in self._selected(request) if name in stream.labels})

    def _selected(self, request: web.Request) -> list[Stream]:
        start, end = bounds(request.query, 6 * 3_600)
        test = selector(request.query["query"])[0] if "query" in request.query else lambda _: True
        return [
            stream
            for stream in self.streams
            if test(stream.labels) and any(start <= at < end for at, _ in stream.lines)
        ]

    def _matching(self, query: str, start: int, end: int) -> list[tuple[Mapping[str, str], int, str]]:
        fits, rest = selector(query)
        tests = filters(rest, len(query) - len(rest))
        return [
            (stream.labels, at, text)
            for stream in self.streams
            if fits(stream.labels)
            for at, text in stream.lines
            if start <= at < end and all(test(text) for test in tests)
        ]


def selector(query: str) -> tuple[Callable[[Mapping[str, str]], bool], str]:
    """The test of `{…}`, and what follows it."""
    text = query.strip()
    if not text.startswith("{"):
        raise Bad("parse error at line 1, col 1: syntax error: unexpected IDENTIFIER")
    at, tests, strict = 1, [], False
    while not text.startswith("}", at):
        found = MATCHER.match(text, at)
        if found is None:
            raise Bad(f"parse error at line 1, col {at + 1}: syntax error: unexpected $end, expecting STRING")
        label, sign, value = found[1], found[2], found[3] if found[3] is not None else found[4]
        tests.append(matcher(label, sign, value))
        strict = strict or (sign == "=" and value != "") or (sign == "=~" and not re.fullmatch(value, ""))
        at = found.end()
        if text.startswith(",", at):
            at += 1
    if not strict:
        raise Bad(
            "parse error : queries require at least one regexp or equality matcher that does not have an "
            'empty-compatible value. For instance, app=~".*" does not meet this requirement'
        )
    return lambda labels: all(test(labels) for test in tests), text[at + 1 :]


def matcher(label: str, sign: str, value: str) -> Callable[[Mapping[str, str]], bool]:
    """One test of a stream's labels."""
    match sign:
        case "=":
            return lambda labels: labels.get(label, "") == value
        case "!=":
            return lambda labels: labels.get(label, "") != value
        case "=~":
            return lambda labels: re.fullmatch(value, labels.get(label, "")) is not None
        case _:
            return lambda labels: re.fullmatch(value, labels.get(label, "")) is None


def filters(rest: str, offset: int) -> list[Test]:
    """The tests of the lines."""
    tests: list[Test] = []
    at = 0
    while rest[at:].strip():
        if stage := STAGE.match(rest, at):
            at = stage.end()
            continue
        found = FILTER.match(rest, at)
        if found is None:
            raise Bad(f"parse error at line 1, col {offset + at + 1}: syntax error: unexpected IDENTIFIER")
        tests.append(line_test(found[1], found[2] if found[2] is not None else found[3]))
        at = found.end()
    return tests


def line_test(sign: str, value: str) -> Test:
    """One test of a line."""
    match sign:
        case "|=":
            return lambda text: value in text
        case "!=":
            return lambda text: value not in text
        case "|~":
            return lambda text: re.search(value, text) is not None
        case _:
            return lambda text: re.search(value, text) is None


def bounds(query: Mapping[str, str], usual_s: float) -> tuple[int, int]:
    """Start and end in nanoseconds."""
    end = number(query["end"], "end") if "end" in query else time.time_ns()
    return number(query["start"], "start") if "start" in query else end - int(usual_s * 1e9), end


def number(text: str, name: str) -> int:
    """A whole number, or Loki's refusal."""
    if not re.fullmatch(r"\d{1,19}", text):
        raise Bad(f'could not parse "{name}": strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def answer(kind: str, result: list[dict[str, Any]]) -> web.Response:
    """An answer of a query."""
    return web.json_response(
        {"status": "success", "data": {"resultType": kind, "result": result, "stats": {}}}
    )


def listed(names: set[str]) -> web.Response:
    """An answer of names; without any, Loki leaves `data` out."""
    return web.json_response({"status": "success", **({"data": sorted(names)} if names else {})})

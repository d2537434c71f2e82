"""Loki's HTTP API over the shop's logs: query_range, query, labels, label values, series."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from datetime import datetime

from aiohttp import web

from bot.incident.incident import Incident
from bot.incident.logql import LogqlError, LogQuery, parse
from bot.incident.logs import SPILL_S, Line, block_of, lines
from bot.incident.promql.lexer import seconds
from bot.incident.story import Story

SERVICES = ("gateway", "checkout", "stock", "database")
LABELS: Mapping[str, tuple[str, ...]] = {
    "level": ("error", "info", "warn"),
    "service": tuple(sorted(SERVICES)),
}
Told = dict[str, object]

USUAL, MOST = 100, 5_000
MOST_BLOCKS = 2 * 288  # of five minutes each
USUAL_S, LONGEST_S = 3_600.0, 31 * 86_400.0


def loki_routes(incident: Incident) -> list[web.RouteDef]:
    """The addresses."""

    async def query_range(request: web.Request) -> web.Response:
        try:
            query = parse(request.query.get("query", ""))
            start, end = _bounds(request, incident.now())
            limit, step = _limit(request), _step(request, end - start)
        except LogqlError as error:
            return web.Response(
                body=str(error).encode(errors="replace"), content_type="text/plain", status=400
            )
        story, now = incident.story, incident.now()
        if query.count_s:
            data = await asyncio.to_thread(_matrix, story, query, (start, min(end, now)), step)
            return _success({"resultType": "matrix", "result": data, "stats": {}})
        newest = request.query.get("direction", "backward") != "forward"
        found = await asyncio.to_thread(_found, story, query, (start, min(end, now)), limit, newest=newest)
        return _success({"resultType": "streams", "result": _streams(found), "stats": {}})

    async def names(_: web.Request) -> web.Response:
        return _success(list(LABELS))

    async def values(request: web.Request) -> web.Response:
        return _success(list(LABELS.get(request.match_info["name"], ())))

    async def series(_: web.Request) -> web.Response:
        return _success([{"service": each, "level": level} for each in SERVICES for level in LABELS["level"]])

    return [
        web.get("/loki/api/v1/query_range", query_range),
        web.get("/loki/api/v1/query", query_range),
        web.get("/loki/api/v1/labels", names),
        web.get("/loki/api/v1/label/{name}/values", values),
        web.get("/loki/api/v1/series", series),
    ]


def _success(data: object) -> web.Response:
    return web.json_response({"status": "success", "data": data})


def _bounds(request: web.Request, now: float) -> tuple[float, float]:
    end = _time(request.query.get("end") or request.query.get("time", ""), now)
    start = _time(request.query.get("start", ""), end - USUAL_S)
    if end < start:
        raise LogqlError(f"end timestamp must not be before or equal to start time: {end} < {start}")
    if end - start > LONGEST_S:
        raise LogqlError(
            f"the query time range exceeds the limit (query length: {end - start:.0f}s, limit: 31d)"
        )
    return start, end


def _time(text: str, usual: float) -> float:
    """Nanoseconds, seconds or RFC 3339."""
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise LogqlError(f"could not parse {text[:60]!r} as a time") from None
    if not math.isfinite(number):
        raise LogqlError(f"could not parse {text[:60]!r} as a time")
    return number / 1e9 if number > 1e14 else number


def _limit(request: web.Request) -> int:
    text = request.query.get("limit", str(USUAL))
    if not text.isascii() or not text.isdigit() or not int(text[:9]):
        raise LogqlError("limit must be a positive value")
    if int(text[:9]) > MOST:
        raise LogqlError(
            f"max entries limit per query exceeded, limit > max_entries_limit ({text[:9]} > {MOST})"
        )
    return int(text[:9])


def _step(request: web.Request, length: float) -> float:
    text = request.query.get("step", "")
    step = seconds(text) or _number(text) or max(length / 250.0, 1.0)
    if length / step > 11_000:
        raise LogqlError("exceeded maximum resolution of 11,000 points per time series")
    return step


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < 1e9 else 0.0


def _matching(story: Story, query: LogQuery, block: int, start: float, end: float) -> Iterator[Line]:
    for line in lines(story, block):
        if (
            start <= line.at < end
            and query.takes({"service": line.service, "level": line.level})
            and query.holds(line)
        ):
            yield line


def _blocks(story: Story, start: float, end: float) -> range:
    """As metrics, logs reach back two days: no query works for longer."""
    last = block_of(story, end)
    return range(max(block_of(story, start - SPILL_S), last - MOST_BLOCKS, 0), last + 1)


def _found(
    story: Story, query: LogQuery, period: tuple[float, float], limit: int, *, newest: bool
) -> list[Line]:
    """The newest or oldest lines, at most `limit`; blocks are read only until there are enough."""
    start, end = period
    found: list[Line] = []
    blocks = _blocks(story, start, end)
    for block in reversed(blocks) if newest else blocks:
        found += _matching(story, query, block, start, end)
        if len(found) >= 2 * limit + 200:
            break
    found.sort(key=lambda line: line.at, reverse=newest)
    return found[:limit]


def _streams(found: list[Line]) -> list[Told]:
    streams: dict[tuple[str, str], list[list[str]]] = {}
    for line in found:
        streams.setdefault((line.service, line.level), []).append(
            [str(int(line.at * 1e6) * 1_000), line.text]
        )
    return [
        {"stream": {"service": service, "level": level}, "values": values}
        for (service, level), values in streams.items()
    ]


def _matrix(
    story: Story, query: LogQuery, period: tuple[float, float], step: float
) -> list[dict[str, object]]:
    """Counts of lines in the time before each step."""
    start, end = period
    times: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for block in _blocks(story, start - query.count_s, end):
        for line in _matching(story, query, block, start - query.count_s, end):
            labels = {"service": line.service, "level": line.level}
            kept = labels if query.by is None else {key: labels[key] for key in query.by if key in labels}
            times.setdefault(tuple(sorted(kept.items())), []).append(line.at)
    count = math.floor((end - start) / step) + 1 if end >= start else 0
    made: list[Told] = []
    for found, moments in times.items():
        counts = _counts(sorted(moments), [start + step * number for number in range(count)], query.count_s)
        per = query.count_s if query.per_second else 1.0
        values = [[at, f"{number / per:g}"] for at, number in counts if number]
        if values:
            made.append({"metric": dict(found), "values": values})
    return made


def _counts(moments: list[float], steps: list[float], length: float) -> Iterator[tuple[float, int]]:
    first = last = 0
    for at in steps:
        while last < len(moments) and moments[last] <= at:
            last += 1
        while first < last and moments[first] <= at - length:
            first += 1
        yield at, last - first

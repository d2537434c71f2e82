"""Call traces in Jaeger's JSON: what a few requests did in each service, and how long."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence

from aiohttp import web

from bot.incident.incident import Incident
from bot.incident.journeys import Journey, Span, journey, journeys
from bot.incident.promql.lexer import seconds
from bot.incident.story import Story

SERVICES = ("gateway", "checkout", "stock", "database")
USUAL, MOST = 20, 200
USUAL_S, MOST_TICKS = 3_600.0, 1_440


def traces_routes(incident: Incident) -> list[web.RouteDef]:
    """The addresses."""

    async def services(_: web.Request) -> web.Response:
        return _answer(list(SERVICES))

    async def operations(request: web.Request) -> web.Response:
        service, now = request.match_info["service"], incident.now()
        recent = _newest(incident.story, now - 300, now)
        found = {
            span.operation
            for each in recent
            for span in each.root.all()
            if (span.service or "gateway") == service
        }
        return _answer(sorted(found))

    async def search(request: web.Request) -> web.Response:
        try:
            found = await asyncio.to_thread(_searched, incident.story, incident.now(), dict(request.query))
        except ValueError as error:
            return _answer([], str(error), 400)
        return _answer([_trace(each) for each in found])

    async def one(request: web.Request) -> web.Response:
        found = await asyncio.to_thread(journey, incident.story, request.match_info["id"])
        if found is None or found.root.start > incident.now():
            return _answer([], "trace not found", 404)
        return _answer([_trace(found)])

    return [
        web.get("/traces/api/services", services),
        web.get("/traces/api/services/{service}/operations", operations),
        web.get("/traces/api/traces", search),
        web.get("/traces/api/traces/{id}", one),
    ]


def _answer(data: Sequence[object], error: str = "", status: int = 200) -> web.Response:
    errors = [{"code": status, "msg": error}] if error else None
    return web.json_response({"data": list(data), "total": len(data), "errors": errors}, status=status)


def _searched(story: Story, now: float, asked: dict[str, str]) -> list[Journey]:
    end = min(_micros(asked, "end", now), now)
    start = _micros(asked, "start", end - USUAL_S)
    limit = min(max(int(asked.get("limit") or USUAL), 1), MOST)
    service, operation = asked.get("service", ""), asked.get("operation", "")
    least, most = seconds(asked.get("minDuration", "")), seconds(asked.get("maxDuration", "")) or math.inf
    found: list[Journey] = []
    for each in _newest(story, start, end):
        spans = [span for span in each.root.all() if not service or (span.service or "gateway") == service]
        if any(least <= span.duration <= most and operation in ("", span.operation) for span in spans):
            found.append(each)
        if len(found) >= limit:
            break
    return found


def _micros(asked: dict[str, str], name: str, usual: float) -> float:
    text = asked.get(name)
    if not text:
        return usual
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{name}: {text} is no time in microseconds")
    return number / 1e6 if number > 1e12 else number


def _newest(story: Story, start: float, end: float) -> Iterator[Journey]:
    last = story.tick(end)
    for tick in range(last, max(story.tick(start), last - MOST_TICKS, -1), -1):
        for each in reversed(journeys(story, tick)):
            if each.root.start + each.root.duration <= end:
                yield each


def _trace(found: Journey) -> dict[str, object]:
    spans: list[dict[str, object]] = []
    _add(found, found.root, None, spans)
    names = {str(each["processID"]) for each in spans}
    return {
        "traceID": found.trace_id,
        "spans": spans,
        "processes": {name: {"serviceName": name, "tags": []} for name in sorted(names)},
        "warnings": None,
    }


def _add(found: Journey, span: Span, parent: tuple[str, str] | None, spans: list[dict[str, object]]) -> None:
    """One span and all within; a call that reached nobody is its caller's own."""
    name = span.service or (parent[1] if parent else "gateway")
    identity = f"{found.trace_id[-12:]}{len(spans):04x}"
    tags: list[dict[str, object]] = [_tag(key, value) for key, value in span.tags.items()]
    if span.operation.startswith(("GET", "POST")):
        tags.append(_tag("http.status_code", span.status))
    if span.error:
        tags += [_tag("error", True), _tag("error.message", span.error)]
    references = [{"refType": "CHILD_OF", "traceID": found.trace_id, "spanID": parent[0]}] if parent else []
    spans.append(
        {
            "traceID": found.trace_id,
            "spanID": identity,
            "operationName": span.operation,
            "references": references,
            "startTime": round(span.start * 1e6),
            "duration": round(span.duration * 1e6),
            "tags": tags,
            "processID": name,
        }
    )
    for child in span.children:
        _add(found, child, (identity, name), spans)


def _tag(key: str, value: str | float) -> dict[str, object]:
    kind = "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "float64"
    return {"key": key, "type": kind, "value": value}

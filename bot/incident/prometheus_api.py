"""Prometheus' HTTP API over the shop's series: https://prometheus.io/docs/prometheus/latest/querying/api/"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from aiohttp import web

from bot.incident import prometheus_answers as answers
from bot.incident.incident import Incident
from bot.incident.metrics import FAMILIES
from bot.incident.promql import nodes
from bot.incident.promql.errors import ParseError, PromqlError
from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.lexer import seconds
from bot.incident.promql.parser import parse
from bot.incident.samples import Series

MOST_POINTS = 11_000

Asked = Mapping[str, Sequence[str]]
Answer = Callable[[Incident, Asked], object]


class Bad(Exception):
    """A parameter that cannot be used."""


def prometheus_routes(incident: Incident) -> list[web.RouteDef]:
    """The addresses; the base URL of this Prometheus ends in /prometheus."""
    made: list[web.RouteDef] = []
    for path, answer in _ANSWERS.items():
        handler = _handler(incident, answer)
        address = f"/prometheus/api/v1/{path}"
        made += [web.get(address, handler), web.post(address, handler)]

    async def values(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return await _handler(incident, lambda told, asked: _label_values(told, asked, name))(request)

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="Prometheus Server is Healthy.\n")

    made.append(web.get("/prometheus/api/v1/label/{name}/values", values))
    return [*made, *(web.get(f"/prometheus/-/{word}", healthy) for word in ("healthy", "ready"))]


def _handler(incident: Incident, answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Answers in a thread: a long query must not hold up what else this process serves."""

    async def handle(request: web.Request) -> web.Response:
        asked: dict[str, list[str]] = {}
        form = await request.post() if request.method == "POST" else {}
        for key, value in (*request.query.items(), *form.items()):
            if isinstance(value, str):
                asked.setdefault(key, []).append(value)
        try:
            data = await asyncio.to_thread(answer, incident, asked)
        except Bad as error:
            return _failed(400, "bad_data", str(error))
        except ParseError as error:
            return _failed(400, "bad_data", f'invalid parameter "query": {error}')
        except PromqlError as error:
            return _failed(422, error.kind, str(error))
        return web.json_response({"status": "success", "data": data})

    return handle


def _failed(status: int, kind: str, message: str) -> web.Response:
    return web.json_response({"status": "error", "errorType": kind, "error": message}, status=status)


# parameters


def _one(asked: Asked, name: str, usual: str = "") -> str:
    return (asked.get(name) or [usual])[0]


def _time(asked: Asked, name: str, usual: float | None) -> float:
    text = _one(asked, name)
    if not text and usual is not None:
        return usual
    try:
        at = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text).timestamp()
        except ValueError:
            at = math.nan
    if not -1e11 < at < 1e11:
        raise Bad(f'invalid parameter "{name}": cannot parse "{text}" to a valid timestamp')
    return at


def _step(asked: Asked) -> float:
    text = _one(asked, "step")
    try:
        step = float(text)
    except ValueError:
        step = seconds(text)
    if not 0 < step < 1e9:
        raise Bad(
            'invalid parameter "step": zero or negative query resolution step widths are not accepted. '
            f'Try a positive integer, got "{text}"'
        )
    return step


def _series(incident: Incident) -> Sequence[Series]:
    return incident.samples.upto(incident.now())


def _matching(incident: Incident, asked: Asked) -> list[Series]:
    """Those that any `match[]` means and that had a scrape in the range; all when there is no `match[]`."""
    start, end = _time(asked, "start", -1e10), _time(asked, "end", 1e10)
    known = [each for each in _series(incident) if each.times[-1] >= start and each.times[0] <= end]
    wanted = asked.get("match[]", ())
    if not wanted:
        return known
    kept: set[int] = set()
    for text in wanted:
        node = parse(text)
        if not isinstance(node, nodes.Selector):
            raise Bad('invalid parameter "match[]": only a vector selector can be used here')
        kept |= {
            place
            for place, each in enumerate(known)
            if all(matcher.holds(dict(each.labels)) for matcher in node.matchers)
        }
    return [known[place] for place in sorted(kept)]


# answers


def _query(incident: Incident, asked: Asked) -> object:
    node = parse(_one(asked, "query"))
    at = _time(asked, "time", incident.now())
    evaluator = Evaluator.between(_series(incident), at, at, 1.0)
    if isinstance(node, nodes.Selector | nodes.Subquery) and nodes.type_of(node) == nodes.RANGE:
        return answers.windows(evaluator.raw(node))
    return answers.instant(evaluator.value(node), at)


def _query_range(incident: Incident, asked: Asked) -> object:
    start, end, step = _time(asked, "start", None), _time(asked, "end", None), _step(asked)
    if end < start:
        raise Bad('invalid parameter "end": end timestamp must not be before start time')
    if (end - start) / step > MOST_POINTS:
        raise Bad(
            f"exceeded maximum resolution of {MOST_POINTS:,} points per timeseries. "
            "Try decreasing the query resolution (?step=XX)"
        )
    node = parse(_one(asked, "query"))
    if nodes.type_of(node) not in (nodes.SCALAR, nodes.VECTOR):
        raise Bad(
            f'invalid parameter "query": invalid expression type "{nodes.type_of(node)}" for range query, '
            "must be Scalar or instant Vector"
        )
    evaluator = Evaluator.between(_series(incident), start, end, step)
    return answers.matrix(evaluator.value(node), evaluator.steps)


def _find_series(incident: Incident, asked: Asked) -> object:
    if not asked.get("match[]"):
        raise Bad("no match[] parameter provided")
    found = _matching(incident, asked)
    limit = _one(asked, "limit", "0")
    most = int(limit[:9]) if limit.isascii() and limit.isdigit() else 0
    return [dict(each.labels) for each in (found[:most] if most else found)]


def _labels(incident: Incident, asked: Asked) -> object:
    return sorted({name for each in _matching(incident, asked) for name, _ in each.labels})


def _label_values(incident: Incident, asked: Asked, name: str) -> object:
    return sorted({value for each in _matching(incident, asked) for key, value in each.labels if key == name})


def _metadata(_: Incident, asked: Asked) -> object:
    wanted = _one(asked, "metric")
    return {
        name: [{"type": kind, "help": words, "unit": ""}]
        for name, (kind, words) in FAMILIES.items()
        if wanted in ("", name)
    }


_ANSWERS: Mapping[str, Answer] = {
    "query": _query,
    "query_range": _query_range,
    "series": _find_series,
    "labels": _labels,
    "metadata": _metadata,
    "alerts": lambda incident, _: answers.alerts(_series(incident), incident.now()),
    "rules": lambda incident, _: answers.rules(_series(incident), incident.now()),
    "targets": lambda incident, _: answers.targets(incident.story, incident.now()),
    "status/buildinfo": lambda _, __: {"version": "2.55.0", "revision": "shop", "branch": "HEAD"},
}

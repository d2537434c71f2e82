"""The Prometheus tools (`[tools.prometheus] url = "…"`): answers that fit a conversation, charts for people.

Rule 1: an answer says what it left out. Rule 2: an error says what to try instead.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from bot.tools import prometheus_specs as names
from bot.tools.chart import draw
from bot.tools.clean import one_line
from bot.tools.prometheus_api import PrometheusApi, Refused
from bot.tools.prometheus_find import metadata, nearest
from bot.tools.prometheus_stats import MOST_SERIES, Series, describe, number
from bot.tools.prometheus_status import alerts, targets
from bot.tools.prometheus_time import (
    MOST_POINTS,
    TIME_WORDS,
    duration,
    good_step,
    iso,
    moment,
    span,
)
from bot.tools.provider import CallContext, ToolOutput
from core.history import Json
from core.tools import Chart, ToolSpec

log = structlog.get_logger()

READY_S = 5.0
MOST_SAMPLES = 50  # of an instant query

Arguments = Mapping[str, Json]


class PrometheusProvider:
    """A `Provider` for one Prometheus server."""

    name = "prometheus"

    def __init__(self, url: str, timeout_s: float = 30.0) -> None:
        self._api = PrometheusApi(url)
        self._specs = names.specs(timeout_s)
        self._tools: Mapping[str, Callable[[Arguments, CallContext], Awaitable[ToolOutput]]] = {
            names.QUERY: self._query,
            names.RANGE: self._range,
            names.ALERTS: self._alerts,
            names.TARGETS: self._targets,
            names.METADATA: self._metadata,
        }

    async def start(self) -> None:
        """Nothing to do: connections are opened on first use."""

    async def ready(self, deadline: float) -> str | None:
        """Whether the server answers now; its tools are offered anyway, since it may answer later."""
        try:
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + READY_S)):
                await self._api.get("status/buildinfo")
        except Refused as refused:
            return f"prometheus does not answer: {refused}"
        except TimeoutError:
            return f"prometheus gave no answer within {READY_S:g} s"
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """The five tools."""
        return self._specs

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Run one of the five; a cancelled query is broken off, and Prometheus stops evaluating it."""
        try:
            return await self._tools[tool](arguments, context)
        except Refused as refused:
            return ToolOutput(str(refused), is_error=True, query=str(arguments.get("query", "")))

    async def close(self) -> None:
        """Give back the connections."""
        await self._api.close()

    async def _query(self, arguments: Arguments, _context: CallContext) -> ToolOutput:
        query = str(arguments["query"])
        at = _time(arguments, "time", time.time())
        data = await self._api.get("query", {"query": query, "time": f"{at:.3f}"})
        result = data["result"]
        if data["resultType"] in ("scalar", "string"):
            return ToolOutput(f"{result[1]} at {iso(float(result[0]))}", query=query, time_range=iso(at))
        if not result:
            return ToolOutput(await self._no_data(query, iso(at)), query=query, time_range=iso(at))
        lines = [_sample(each) for each in result[:MOST_SAMPLES]]
        if len(result) > MOST_SAMPLES:
            lines.append(
                f"{len(result) - MOST_SAMPLES} more series are not shown; aggregate with sum by or topk."
            )
        return ToolOutput(f"at {iso(at)}:\n" + "\n".join(lines), query=query, time_range=iso(at))

    async def _range(self, arguments: Arguments, context: CallContext) -> ToolOutput:
        query = str(arguments["query"])
        now = time.time()
        start, end = _time(arguments, "start", now), _time(arguments, "end", now)
        step = _step(arguments, start, end)
        parameters = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        data = await self._api.get("query_range", parameters)
        period = span(start, end)
        found = [_series(each) for each in data["result"]]
        if not found:
            return ToolOutput(await self._no_data(query, period), query=query, time_range=period)
        found.sort(key=_height, reverse=True)
        lines = [f"{len(found)} series, {period}, step {step:g} s:"]
        lines += [describe(series, step) for series in found[:MOST_SERIES]]
        if len(found) > MOST_SERIES:
            lines.append(
                f"{len(found) - MOST_SERIES} more series are not shown; aggregate with sum by or topk."
            )
        context.progress("\n".join(lines))
        png = await draw(query, str(arguments.get("unit", "")), found)
        if png is None:
            lines.append("(the chart could not be drawn)")
        charts = (Chart(one_line(query, 150), png),) if png is not None else ()
        return ToolOutput("\n".join(lines), query=query, time_range=period, charts=charts)

    async def _alerts(self, arguments: Arguments, _context: CallContext) -> ToolOutput:
        data = await self._api.get("alerts")
        return ToolOutput(alerts(data["alerts"], str(arguments.get("match", ""))), query="alerts")

    async def _targets(self, arguments: Arguments, _context: CallContext) -> ToolOutput:
        data = await self._api.get("targets", {"state": "active"})
        return ToolOutput(targets(data["activeTargets"], str(arguments.get("job", ""))), query="targets")

    async def _metadata(self, arguments: Arguments, _context: CallContext) -> ToolOutput:
        pattern = str(arguments["pattern"])
        return ToolOutput(await metadata(self._api, pattern), query=f"metrics like {pattern}")

    async def _no_data(self, query: str, when: str) -> str:
        """No data is an answer, but mostly a misspelt name or label."""
        return f"no data for {when}. " + await nearest(self._api, query)


def _time(arguments: Arguments, key: str, now: float) -> float:
    text = str(arguments.get(key, "now"))
    at = moment(text, now)
    if at is None:
        raise Refused(f"{key}: {one_line(text, 60)!r} is no time; use {TIME_WORDS}")
    return at


def _step(arguments: Arguments, start: float, end: float) -> float:
    """The step that was asked for, or one that fits; one that Prometheus would refuse is refused here."""
    if end <= start:
        raise Refused(f"the range is empty: start {iso(start)} is not before end {iso(end)}")
    fitting = good_step(end - start)
    if "step" not in arguments:
        return fitting
    step = duration(str(arguments["step"]))
    if not step:
        raise Refused(
            f'step: {one_line(str(arguments["step"]), 60)!r} is no duration; use "30s", "5m" or seconds'
        )
    if (end - start) / step > MOST_POINTS:
        raise Refused(
            f"too many points: {(end - start) / step:.0f} for each series, "
            f"Prometheus gives at most {MOST_POINTS}; use a step of {fitting:g}s or more, or a shorter range"
        )
    return step


def _series(result: Json) -> Series:
    points = [(float(at), float(value)) for at, value in result.get("values", ())]
    return Series({str(key): str(value) for key, value in result["metric"].items()}, points)


def _height(series: Series) -> float:
    """The largest value: what is shown first, and kept when there are too many."""
    return max((abs(value) for _, value in series.points if math.isfinite(value)), default=-1.0)


def _sample(result: Json) -> str:
    name = Series(result["metric"], ()).name
    if "value" in result:
        return f"{name} {number(float(result['value'][1]))}"
    if "values" in result:  # a range vector: `metric[5m]`
        values = ", ".join(
            f"{number(float(value))} at {iso(float(at))}" for at, value in result["values"][-20:]
        )
        return f"{name} {values}"
    return f"{name} (a native histogram; use histogram_quantile or histogram_count)"

"""The log tools (`[tools.logs] url = "…"`): what thousands of lines say, in a page, with a chart for people.

Rule 1: an answer says what it left out. Rule 2: an error says what to try instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from bot.tools import logs_specs as names
from bot.tools import logs_words as words
from bot.tools.chart import draw
from bot.tools.clean import one_line
from bot.tools.logs_api import LogsApi, Refused
from bot.tools.logs_find import nearest, overview
from bot.tools.logs_lines import Line
from bot.tools.prometheus_stats import MOST_SERIES, Series, describe
from bot.tools.prometheus_time import TIME_WORDS, good_step, iso, moment, span
from bot.tools.provider import CallContext, ToolOutput
from core.history import Json
from core.tools import Chart, ToolSpec

READY_S = 5.0

Arguments = Mapping[str, Json]


class LogsProvider:
    """A `Provider` for one Loki."""

    name = "logs"

    def __init__(self, url: str, org: str | None = None, timeout_s: float = 30.0) -> None:
        self._api = LogsApi(url, org)
        self._specs = names.specs(timeout_s)
        self._tools: Mapping[str, Callable[[Arguments, CallContext], Awaitable[ToolOutput]]] = {
            names.QUERY: self._query,
            names.LABELS: self._labels,
        }

    async def start(self) -> None:
        """Nothing to do: connections are opened on first use."""

    async def ready(self, deadline: float) -> str | None:
        """Whether it answers now; its tools are offered anyway, since it may answer later."""
        try:
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + READY_S)):
                await self._api.labels({})
        except Refused as refused:
            return f"logs: {refused}"
        except TimeoutError:
            return f"logs gave no answer within {READY_S:g} s"
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """The two tools."""
        return self._specs

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Run one of the two; a cancelled query is broken off, and Loki stops evaluating it."""
        try:
            return await self._tools[tool](arguments, context)
        except Refused as refused:
            return ToolOutput(str(refused), is_error=True, query=str(arguments.get("query", "")))

    async def close(self) -> None:
        """Give back the connections."""
        await self._api.close()

    async def _query(self, arguments: Arguments, context: CallContext) -> ToolOutput:
        query = str(arguments["query"])
        start, end = _range(arguments)
        limit = int(arguments.get("limit", names.USUAL))
        data = await self._api.range(
            {
                "query": query,
                **_bounds(start, end),
                "limit": str(limit),
                "direction": "backward",
                "step": f"{good_step(end - start):g}",
            }
        )
        if data["resultType"] == "matrix":
            return await self._matrix(query, data["result"], start, end)
        lines = await asyncio.to_thread(_lines, data["result"])
        if not lines:
            text = f"no lines for {span(start, end)}. " + await nearest(self._api, query, _bounds(start, end))
            return ToolOutput(text, query=query, time_range=span(start, end))
        return await self._told(query, lines, limit, (start, end), context)

    async def _told(
        self, query: str, lines: list[Line], limit: int, period: tuple[float, float], context: CallContext
    ) -> ToolOutput:
        start, end = period
        width = words.bucket(end - start)
        told = [f"{len(lines)} lines, {span(start, end)}, {words.streams(lines)}"]
        series = words.counts(lines, start, end, width)
        if len(lines) >= limit:
            counted = await self._counted(query, start, end, width)
            series = counted or words.counts(lines, lines[0].at, end, width)
            told[0] = (
                f"the newest {len(lines)} lines ({span(lines[0].at, lines[-1].at)}) of more in "
                f"{span(start, end)}, {words.streams(lines)}"
            )
            whole = "all lines of the range" if counted else "only the lines that were read"
            told.append(f"counts are of {whole}; patterns are of the lines that were read.")
        told += words.told_counts(series[:MOST_SERIES], width)
        told += await asyncio.to_thread(words.patterns, lines)
        context.progress("\n".join(told))
        told += words.ends(lines)
        unit = "lines per minute" if width == 60 else f"lines per {width:g} s"
        charts = await _charts(query, unit, series, told)
        return ToolOutput("\n".join(told), query=query, time_range=span(start, end), charts=charts)

    async def _counted(self, query: str, start: float, end: float, width: float) -> list[Series]:
        """How many lines there were in all, by level; none when this Loki does not count for us."""
        parameters = {
            "query": f"sum by (level, detected_level) (count_over_time({query}\n[{width:g}s]))",
            **_bounds(start + width, end + width),
            "step": f"{width:g}",
        }
        try:
            data = await self._api.range(parameters)
            return words.by_level([_series(each) for each in data["result"]], width)
        except (Refused, KeyError, TypeError, ValueError):
            return []

    async def _matrix(self, query: str, result: Any, start: float, end: float) -> ToolOutput:
        found = sorted((_series(each) for each in result), key=_height, reverse=True)
        period = span(start, end)
        if not found:
            text = f"no data for {period}. " + await nearest(self._api, query, _bounds(start, end))
            return ToolOutput(text, query=query, time_range=period)
        step = good_step(end - start)
        told = [f"{len(found)} series, {period}, step {step:g} s:"]
        told += [describe(series, step) for series in found[:MOST_SERIES]]
        if len(found) > MOST_SERIES:
            told.append(
                f"{len(found) - MOST_SERIES} more series are not shown; aggregate with sum by or topk."
            )
        charts = await _charts(query, "", found, told)
        return ToolOutput("\n".join(told), query=query, time_range=period, charts=charts)

    async def _labels(self, arguments: Arguments, _context: CallContext) -> ToolOutput:
        start, end = _range(arguments)
        label, match = str(arguments.get("label", "")), str(arguments.get("match", ""))
        bounds = {**_bounds(start, end), **({"query": match} if match else {})}
        text = await overview(self._api, label, bounds)
        query = f"labels{f' {label}' if label else ''}{f' of {match}' if match else ''}"
        return ToolOutput(text, query=query, time_range=span(start, end))


async def _charts(query: str, unit: str, series: Sequence[Series], told: list[str]) -> tuple[Chart, ...]:
    png = await draw(query, unit, series)
    if png is None:
        told.append("(the chart could not be drawn)")
        return ()
    return (Chart(one_line(query, 150), png),)


def _range(arguments: Arguments) -> tuple[float, float]:
    now = time.time()
    found = []
    for key, usual in (("start", "-1h"), ("end", "now")):
        text = str(arguments.get(key, usual))
        at = moment(text, now)
        if at is None:
            raise Refused(f"{key}: {one_line(text, 60)!r} is no time; use {TIME_WORDS}")
        found.append(at)
    start, end = found
    if end <= start:
        raise Refused(f"the range is empty: start {iso(start)} is not before end {iso(end)}")
    return start, end


def _bounds(start: float, end: float) -> dict[str, str]:
    """Loki takes nanoseconds."""
    return {"start": f"{int(start * 1_000)}000000", "end": f"{int(end * 1_000)}000000"}


def _lines(result: Any) -> list[Line]:
    """The lines of all streams, oldest first."""
    found = [
        Line(int(value[0]) / 1e9, stream["stream"], str(value[1]))
        for stream in result
        for value in stream["values"]
    ]
    return sorted(found, key=lambda line: line.at)


def _series(result: Any) -> Series:
    points = [(float(at), float(value)) for at, value in result.get("values", ())]
    return Series({str(key): str(value) for key, value in result["metric"].items()}, points)


def _height(series: Series) -> float:
    return max((value for _, value in series.points), default=-1.0)

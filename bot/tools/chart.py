"""Charts of time series, drawn in a short-lived child process: matplotlib never lives in the worker.

A child that fails, hangs or answers with something else costs the chart and nothing more.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from collections.abc import Sequence

import structlog

from bot.tools import chart_process
from bot.tools.prometheus_stats import Series

log = structlog.get_logger()

LIMIT_S = 20.0
MOST_LINES = 8
MOST_DRAWN = 2_000  # points of one line; a chart is 1,200 pixels wide
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "MPLCONFIGDIR", "SYSTEMROOT")  # and none of our secrets
AT_ONCE = 2  # each child takes a second of a processor and 100 MB

_room = asyncio.Semaphore(AT_ONCE)


async def draw(title: str, unit: str, series: Sequence[Series]) -> bytes | None:
    """A PNG of the first few series, or None."""
    order = {
        "title": title,
        "unit": unit,
        "hidden": max(0, len(series) - MOST_LINES),
        "lines": [
            {"name": name, "points": _thinned(each)}
            for name, each in zip(_short_names(series), series[:MOST_LINES], strict=False)
        ],
    }
    async with _room:
        return await _drawn(json.dumps(order).encode(errors="replace"))


async def _drawn(order: bytes) -> bytes | None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # our own folder is no place to look for modules
        chart_process.__file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in INHERITED if name in os.environ},
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            png, said = await child.communicate(order)
    except TimeoutError:
        log.warning("chart_timed_out", limit_s=LIMIT_S)
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0 or not png.startswith(PNG_SIGNATURE):
        log.warning("chart_failed", code=child.returncode, said=said[-300:].decode(errors="replace"))
        return None
    return png


def _short_names(series: Sequence[Series]) -> list[str]:
    """The names without the labels that all series share: a legend has room for what tells them apart."""
    common = set(series[0].labels.items()) if len(series) > 1 else set()
    for each in series:
        common &= set(each.labels.items())
    return [
        Series({k: v for k, v in each.labels.items() if (k, v) not in common}, ()).name for each in series
    ]


def _thinned(series: Series) -> list[tuple[float, float | None]]:
    """Every n-th point; JSON has no NaN, so a gap is None."""
    every = max(1, math.ceil(len(series.points) / MOST_DRAWN))
    return [(at, value if math.isfinite(value) else None) for at, value in series.points[::every]]

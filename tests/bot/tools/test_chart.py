"""A chart is a picture of the right size, drawn elsewhere, and its failure costs nothing but itself."""

import math
import struct
import sys

import pytest

from bot.tools.chart import draw
from bot.tools.prometheus_stats import Series

pytestmark = pytest.mark.slow

NOW = 1_790_000_000.0


def size(png: bytes) -> tuple[int, int]:
    """Width and height from the header (PNG specification, 11.2.2)."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


async def test_a_chart_is_drawn_in_another_process() -> None:
    series = [
        Series({"__name__": "up", "job": f"_{n}"}, [(NOW + i, math.sin(i)) for i in range(50)])
        for n in range(12)
    ]
    png = await draw('rate(up{job="$x$"}[5m])\n and more', "req/s", series)
    assert png is not None
    assert size(png) == (1_200, 500)
    assert "matplotlib" not in sys.modules


async def test_gaps_infinities_and_a_single_point_can_be_drawn() -> None:
    series = [
        Series({}, [(NOW, math.nan), (NOW + 1, math.inf), (NOW + 2, 1.0)]),
        Series({"a": "b"}, [(NOW, 2.0)]),
    ]
    assert await draw("", "", series) is not None


async def test_a_time_that_cannot_be_drawn_costs_only_the_chart() -> None:
    assert await draw("up", "", [Series({}, [(1e300, 1.0)])]) is None

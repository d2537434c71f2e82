"""A line of statistics says what a series did, whatever its points are."""

import math

from hypothesis import given
from hypothesis import strategies as st

from bot.tools.prometheus_stats import Series, describe, jump, number, percentile, trend

T = 1_790_000_000.0


def series(*values: float, step: float = 60) -> Series:
    return Series({"__name__": "m", "job": "a"}, [(T + n * step, value) for n, value in enumerate(values)])


def test_a_step_is_told_with_its_time() -> None:
    line = describe(series(*[1.0] * 10, *[9.0] * 10), 60)
    assert line.startswith(
        'm{job="a"}: first 1, last 9; min 1 at 2026-09-21T14:13:20Z, max 9 at 2026-09-21T14:23:20Z'
    )
    assert "mean 5, p95 9" in line
    assert "trend up" in line
    assert "biggest jump 1 → 9 at 2026-09-21T14:23:20Z" in line


def test_a_constant_series_is_called_constant() -> None:
    assert "constant 3 (5 points" in describe(series(3, 3, 3, 3, 3), 60)


def test_gaps_and_nan_are_told() -> None:
    points = [(T, 1.0), (T + 60, 2.0), (T + 600, math.nan), (T + 660, 3.0)]
    line = describe(Series({}, points), 60)
    assert "1 gap(s) without data: 2026-09-21T14:14:20Z to 2026-09-21T14:23:20Z" in line
    assert "1 points are NaN" in line
    assert describe(series(math.nan), 60).endswith("only NaN")


def test_noise_is_no_trend_and_a_fall_is_one() -> None:
    assert trend(series(5, 6, 5, 6, 5, 6, 5, 6).points) == "trend flat"
    assert trend(series(9, 8, 7, 6, 5).points).startswith("trend down (-4")
    assert trend(series(1).points) == "no trend: too few points"


def test_the_percentile_is_a_value_that_did_occur() -> None:
    assert percentile([1, 2, 3, 4, 100], 95) == 100
    assert percentile([7], 95) == 7


def test_numbers_are_short() -> None:
    assert [number(x) for x in (0, 0.000123456789, 12.5, 99_999, 1_234_567, 2.5e9, math.inf)] == [
        "0", "0.000123457", "12.5", "99999", "1.235M", "2.5G", "inf",
    ]  # fmt: skip


@given(st.lists(st.floats(), min_size=1, max_size=40))
def test_any_floats_can_be_described(values: list[float]) -> None:
    assert describe(series(*values), 60)
    assert jump(series(*values).points)

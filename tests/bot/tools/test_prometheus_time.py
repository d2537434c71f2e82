"""Times and steps are understood in every form that a model writes."""

import pytest

from bot.tools.prometheus_time import duration, good_step, iso, moment, span

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("now", NOW),
        ("", NOW),
        ("-1h", NOW - 3_600),
        ("now-30m", NOW - 1_800),
        ("now - 1h30m", NOW - 5_400),
        ("+5m", NOW + 300),
        ("1789990000", 1_789_990_000),
        ("1789990000.5", 1_789_990_000.5),
        ("1789990000000", 1_789_990_000),
        ("2026-09-21T14:13:20Z", NOW),
        ("2026-09-21T16:13:20+02:00", NOW),
        ("2026-09-21 14:13:20", NOW),
    ],
)
def test_a_time_is_understood(text: str, seconds: float) -> None:
    assert moment(text, NOW) == seconds


@pytest.mark.parametrize("text", ["yesterday", "-", "nan", "-inf", "2026-13-01", "now-", "1e300"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment(text, NOW) is None


@pytest.mark.parametrize(
    "text,seconds", [("30s", 30), ("5m", 300), ("1h30m", 5_400), ("15", 15), ("250ms", 0.25)]
)
def test_a_duration_is_understood(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "five", "-5", "1x", "nan", "inf"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration(text) is None


def test_a_fitting_step_is_round_and_gives_a_few_hundred_points() -> None:
    for seconds in (60, 3_600, 86_400, 30 * 86_400):
        assert 10 < seconds / good_step(seconds) <= 240
    assert good_step(3_600) == 15


def test_times_are_written_in_utc() -> None:
    assert iso(NOW) == "2026-09-21T14:13:20Z"
    assert span(NOW, NOW + 60) == "2026-09-21T14:13:20Z to 2026-09-21T14:14:20Z"

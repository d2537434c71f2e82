"""Levels and patterns of log lines of every kind."""

import time

import pytest

from bot.tools.logs_lines import Line
from bot.tools.logs_words import bucket, counts, patterns


@pytest.mark.parametrize(
    "text, level",
    [
        ('{"level":"ERROR","msg":"x"}', "error"),
        ('{"severity":"critical"}', "fatal"),
        ("level=warning msg=x", "warn"),
        ("2026-01-31 14:05:00 ERROR [main] x", "error"),
        ("E0131 x", "no level"),
        ("an error happened", "no level"),
        ("{broken json level=debug", "debug"),
    ],
)
def test_a_level_is_read_from_the_line(text: str, level: str) -> None:
    assert Line(0, {}, text).level == level


def test_a_label_says_the_level_before_the_line_does() -> None:
    assert Line(0, {"detected_level": "warn"}, "level=error").level == "warn"


@pytest.mark.parametrize(
    "text, pattern",
    [
        ("took 12.5 ms for user 77", "took <n> ms for user <n>"),
        ("GET /orders/123e4567-e89b-12d3-a456-426614174000", "GET /orders/<uuid>"),
        ("peer 10.0.0.5:8080 gone", "peer <ip> gone"),
        ("commit 3f2a9bc0 deployed", "commit <hex> deployed"),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736 slow", "trace <hex> slow"),
        ("at 2026-01-31T14:05:00.123Z done", "at <time> done"),
        ('level=info msg="order 5 placed" n=1', "order <n> placed"),
        ('{"msg": "order 5 placed", "n": 1}', "order <n> placed"),
        ("deadbeef is a word", "deadbeef is a word"),
        ("pool-7-thread-3 waits", "pool-<n>-thread-<n> waits"),
    ],
)
def test_what_differs_from_line_to_line_is_masked(text: str, pattern: str) -> None:
    assert Line(0, {}, text).pattern == pattern


def test_a_hostile_line_is_masked_in_no_time() -> None:
    lines = [
        "1" * 100_000,
        "a1" * 50_000,
        "=" * 100_000,
        '{"a":' * 20_000,
        'msg="' + "\\" * 90_000,
        "-" * 99_999,
    ]
    began = time.perf_counter()
    assert all(Line(0, {}, text).pattern is not None and Line(0, {}, text).level for text in lines)
    assert time.perf_counter() - began < 1


def test_minutes_without_a_line_count_zero() -> None:
    (series,) = counts([Line(60, {}, "x"), Line(70, {}, "x"), Line(200, {}, "x")], 0, 240, 60)
    assert [value for _, value in series.points] == [0, 2, 0, 1]


def test_many_patterns_are_cut_and_the_rest_is_counted() -> None:
    told = patterns([Line(0, {}, "word " + "x" * n) for n in range(40)])
    assert told[0] == "40 message patterns, the most frequent first:"
    assert told[-1].startswith("28 more patterns (28 lines) are not shown")


def test_a_pattern_has_an_example_unless_it_says_all_there_is() -> None:
    told = patterns([Line(0, {}, '{"msg": "failed", "cause": "pool"}'), Line(0, {}, "plain words")])
    assert '    such as: {"msg": "failed", "cause": "pool"}' in told
    assert len(told) == 4


@pytest.mark.parametrize("seconds, width", [(300, 10), (3_600, 60), (86_400, 360), (604_800, 2_520)])
def test_buckets_are_minutes_where_that_makes_sense(seconds: float, width: float) -> None:
    assert bucket(seconds) == width

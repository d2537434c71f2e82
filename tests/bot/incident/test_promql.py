"""Golden cases from Prometheus' documented rules, over four series whose values are easy to reckon with."""

import numpy as np
import pytest

from bot.incident.promql.errors import ParseError, PromqlError
from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.parser import parse
from bot.incident.samples import Series

TIMES = 10.0 * np.arange(1, 61, dtype=np.float64)  # a scrape every ten seconds, the last at 600


def made(name: str, values: np.ndarray, ended: float = np.inf, **labels: str) -> Series:
    return Series(tuple(sorted({"__name__": name, **labels}.items())), TIMES[: len(values)], values, ended)


SERIES = (
    made("hits_total", 5.0 * np.arange(60), job="a", code="200"),
    made("hits_total", 1.0 * np.arange(60), job="a", code="500"),
    made("hits_total", np.concatenate((2.0 * np.arange(30), 2.0 * np.arange(30))), job="b", code="200"),
    made("heat", np.sin(np.arange(60)), job="a"),
    made("heat", np.full(60, 4.0), job="b"),
    made("gone", np.ones(20), ended=210.0),
    made("team", np.ones(60), job="a", owner="x"),
    made("d_bucket", 1.0 * np.arange(60), le="0.1"),
    made("d_bucket", 3.0 * np.arange(60), le="0.5"),
    made("d_bucket", 4.0 * np.arange(60), le="+Inf"),
)


def at(query: str, moment: float = 600.0) -> dict[str, float]:
    """Labels in short → value, at one moment."""
    found = Evaluator.between(SERIES, moment, moment, 1.0).value(parse(query))
    if isinstance(found, np.ndarray):
        return {"scalar": float(found[0])}
    assert isinstance(found, list)
    return {
        ",".join(f"{key}={value}" for key, value in row.labels): round(float(row.values[0]), 6)
        for row in found
        if row.there[0]
    }


CASES = {
    # selectors
    'hits_total{code="500"}': {"__name__=hits_total,code=500,job=a": 59},
    'count(hits_total{code=~"2.."})': {"": 2},
    'count(hits_total{code!~"2..",job!=""})': {"": 1},
    'count({__name__=~"hits.*|heat"})': {"": 5},
    'hits_total{code="500"} offset 100s': {"__name__=hits_total,code=500,job=a": 49},
    'hits_total{code="500"} @ 100': {"__name__=hits_total,code=500,job=a": 9},
    "gone": {},
    # ranges: an even counter is exact, a reset is no fall
    'rate(hits_total{job="a"}[1m])': {"code=200,job=a": 0.5, "code=500,job=a": 0.1},
    'increase(hits_total{code="500"}[100s])': {"code=500,job=a": 10},
    'irate(hits_total{code="500"}[1m])': {"code=500,job=a": 0.1},
    'resets(hits_total{job="b"}[10m])': {"code=200,job=b": 1},
    'round(rate(hits_total{job="b"}[8m]), 0.01)': {"code=200,job=b": 0.2},
    'changes(heat{job="b"}[5m])': {"job=b": 0},
    'count_over_time(heat{job="b"}[1m])': {"job=b": 6},
    'sum_over_time(heat{job="b"}[1m])': {"job=b": 24},
    'last_over_time(heat{job="b"}[1m])': {"__name__=heat,job=b": 4},
    'max_over_time(hits_total{code="500"}[1m]) - min_over_time(hits_total{code="500"}[1m])': {
        "code=500,job=a": 5
    },
    'avg_over_time(hits_total{code="500"}[30s])': {"code=500,job=a": 58},
    'stddev_over_time(hits_total{code="500"}[30s])': {"code=500,job=a": 0.816497},
    'quantile_over_time(0.5, hits_total{code="500"}[30s])': {"code=500,job=a": 58},
    'deriv(hits_total{code="500"}[1m])': {"code=500,job=a": 0.1},
    'predict_linear(hits_total{code="500"}[1m], 100)': {"code=500,job=a": 69},
    'max_over_time(sum(rate(hits_total{job="a"}[1m]))[5m:30s])': {"": 0.6},
    # aggregation
    "sum by (job) (hits_total)": {"job=a": 354, "job=b": 58},
    "sum without (code) (hits_total)": {"job=a": 354, "job=b": 58},
    "max(hits_total) - min(hits_total)": {"": 237},
    "avg by (code) (hits_total)": {"code=200": 176.5, "code=500": 59},
    "topk(1, hits_total)": {"__name__=hits_total,code=200,job=a": 295},
    "bottomk(1, hits_total)": {"__name__=hits_total,code=200,job=b": 58},
    "quantile(0.5, hits_total)": {"": 59},
    # histogram: the bucket to 0.5 holds the half, a quarter of the way in
    "histogram_quantile(0.5, d_bucket)": {"": 0.3},
    "histogram_quantile(0.9, d_bucket)": {"": 0.5},
    "histogram_quantile(2, d_bucket)": {"": np.inf},
    # operators
    "1 + 2 * 3 ^ 2": {"scalar": 19},
    "-2 ^ 2": {"scalar": -4},
    "2 ^ 3 ^ 2": {"scalar": 512},
    "7 % 4": {"scalar": 3},
    "1 > bool 2": {"scalar": 0},
    'heat{job="b"} * 2': {"job=b": 8},
    'heat{job="b"} > 5': {},
    'heat{job="b"} > 3': {"__name__=heat,job=b": 4},
    'heat{job="b"} > bool 5': {"job=b": 0},
    'hits_total{code="500"} / ignoring(code) hits_total{code="200",job="a"}': {"job=a": 0.2},
    'sum by (job) (hits_total) / on(job) heat{job="b"}': {"job=b": 14.5},
    "hits_total * on(job) group_left(owner) team": {
        "code=200,job=a,owner=x": 295,
        "code=500,job=a,owner=x": 59,
    },
    'heat{job="b"} and on(job) team': {},
    "heat unless on(job) team": {"__name__=heat,job=b": 4},
    'count(heat or hits_total)': {"": 5},
    # functions
    "absent(nothing_here{job=\"a\"})": {"job=a": 1},
    "absent(heat)": {},
    'scalar(heat{job="b"})': {"scalar": 4},
    "vector(3)": {"": 3},
    "time()": {"scalar": 600},
    'clamp_max(heat{job="b"}, 3)': {"job=b": 3},
    'timestamp(heat{job="b"})': {"job=b": 600},
    'label_replace(heat{job="b"}, "to", "x-$1", "job", "(.*)")': {"__name__=heat,job=b,to=x-b": 4},
}  # fmt: skip


@pytest.mark.parametrize("query", CASES)
def test_a_query_has_the_value_that_prometheus_documents(query: str) -> None:
    assert at(query) == pytest.approx(CASES[query])


def test_a_series_that_ended_is_gone_at_once_and_one_that_is_late_after_five_minutes() -> None:
    assert at("gone", 205) == {"__name__=gone": 1}
    assert at("gone", 215) == {}
    assert len(at("heat", 899)) == 2
    assert at("heat", 901) == {}


WRONG = {
    "": "1:1: parse error: no expression found in input",
    "sum(": "1:5: parse error: unexpected end of input",
    "rate(hits_total)": "1:6: parse error: expected type range vector in call to function",
    "sum(hits_total[5m])": "1:5: parse error: expected type instant vector in aggregation expression",
    "frobnicate(hits_total)": '1:1: parse error: unknown function with name "frobnicate"',
    'hits_total{code="500"': "1:22: parse error: unexpected end of input",
    "hits_total{code=500}": "1:17: parse error: unexpected number '500' in label matching, expected string",
    'hits_total{code=~"("}': "1:18: parse error: error parsing regexp",
    "{}": "1:1: parse error: vector selector must contain at least one non-empty matcher",
    "hits_total[5]": "1:12: parse error: bad duration in range",
    "1 > 2": "1:3: parse error: comparisons between scalars must use BOOL modifier",
    "heat\n  + + * 2": "2:7: parse error: unexpected sign '*'",
    "heat $ 2": "1:6: parse error: unexpected character",
    'rate(hits_total{code=~"(a+)+"}[5m])': "1:23: parse error: error parsing regexp: repetition of",
    "(" * 200: "nested too deeply",
}


@pytest.mark.parametrize("query", WRONG)
def test_what_is_no_query_is_told_with_its_place(query: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(query)
    assert WRONG[query] in str(refused.value)


def test_two_series_for_one_are_refused_in_prometheus_words() -> None:
    with pytest.raises(PromqlError, match="many-to-many matching not allowed"):
        at("heat * on(job) hits_total")
    with pytest.raises(PromqlError, match="group_left"):
        at("hits_total * on(job) team")

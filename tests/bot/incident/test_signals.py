"""Numbers are the same however they are asked for, and a fault shows where it is and where it is felt."""

import numpy as np
import pytest

from bot.incident.samples import CHUNK, KEPT, Samples
from bot.incident.scenarios import SCENARIOS
from bot.incident.story import TICK_S
from tests.bot.incident.stories import EVENING, story, value

P99 = 'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{service="%s"}[5m])))'
ERRORS = (
    'sum(rate(http_requests_total{service="%s",status=~"5.."}[5m])) '
    '/ sum(rate(http_requests_total{service="%s"}[5m]))'
)
FAULTS = sorted(set(SCENARIOS) - {"nothing_wrong"})


def test_the_same_story_told_twice_has_the_same_numbers() -> None:
    once, again = (Samples(story("bad_deploy")).upto(EVENING) for _ in range(2))
    assert [each.labels for each in once] == [each.labels for each in again]
    assert all(np.array_equal(one.values, two.values) for one, two in zip(once, again, strict=True))


def test_it_does_not_matter_in_how_many_pieces_a_story_was_computed() -> None:
    at_once, by_and_by = Samples(story("exhausted_pool")), Samples(story("exhausted_pool"))
    for hours in (-25, -24, -3, 0):
        by_and_by.upto(EVENING + hours * 3_600)
    later = EVENING + 2 * CHUNK * TICK_S
    for one, two in zip(at_once.upto(later), by_and_by.upto(later), strict=True):
        assert one.labels == two.labels
        assert np.array_equal(one.values, two.values), one.labels


def test_a_story_that_is_told_for_days_keeps_two_of_them_and_counts_on() -> None:
    days = Samples(story("bad_deploy")), Samples(story("bad_deploy"))
    for hours in range(0, 60, 7):
        days[0].upto(EVENING + hours * 3_600)
    one, two = (each.upto(EVENING + 60 * 3_600) for each in days)
    assert {len(each.times) for each in one if each.ended == np.inf} == {KEPT}
    for left, right in zip(one, two, strict=True):
        assert left.labels == right.labels
        assert np.array_equal(left.values, right.values)
        assert np.array_equal(left.times, right.times)


def test_another_seed_gives_other_numbers() -> None:
    assert value(story(seed=1), "sum(http_requests_total)") != value(
        story(seed=2), "sum(http_requests_total)"
    )


def test_nothing_is_known_after_now() -> None:
    assert all(each.times[-1] <= EVENING for each in Samples(story()).upto(EVENING))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_counter_never_falls_and_buckets_hold_each_other(name: str) -> None:
    found = {each.labels: each for each in Samples(story(name)).upto(EVENING)}
    for labels, series in found.items():
        metric = dict(labels)["__name__"]
        assert np.isfinite(series.values).all(), labels
        if metric.endswith(("_total", "_bucket", "_count", "_sum")):
            assert (np.diff(series.values) >= 0).all(), labels
        if metric.endswith("_count"):
            rest = {key: text for key, text in labels if key != "__name__"}
            bucket = {**rest, "__name__": metric.removesuffix("_count") + "_bucket", "le": "+Inf"}
            assert np.array_equal(found[tuple(sorted(bucket.items()))].values, series.values)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("hour", [0, 12])
def test_the_alert_is_true_unless_nothing_is_wrong(name: str, hour: int) -> None:
    told = story(name, at=EVENING + hour * 3_600)
    slow, failing = value(told, P99 % "checkout"), value(told, ERRORS % ("checkout", "checkout"))
    if name == "nothing_wrong":
        assert (slow < 1, failing < 0.01) == (True, True)
    elif name == "expired_certificate":
        assert failing > 0.05
    else:
        assert slow > 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_before_its_fault_a_shop_is_healthy(name: str) -> None:
    told = story(name)
    for service in ("gateway", "checkout", "stock"):
        assert value(told, P99 % service, -90) < 1.2
        assert value(told, ERRORS % (service, service), -90) < 0.01


# What shows where: an expression, and the faults that move it far from what it was before.
SIGNS = {
    'sum(rate(db_queries_total{client="checkout"}[5m]))': {"bad_deploy"},
    'avg_over_time(db_pool_connections_in_use{service="stock"}[5m]) + 2': {"exhausted_pool"},
    'sum(rate(dependency_request_duration_seconds_sum{dependency="payments"}[5m])) '
    '/ sum(rate(dependency_request_duration_seconds_count{dependency="payments"}[5m]))': {"slow_dependency"},
    'avg_over_time(cpu_pressure_ratio{service="stock"}[5m])': {"noisy_neighbour"},
    'avg_over_time(workload_cpu_cores_used{workload="search-indexer"}[5m])': {"noisy_neighbour"},
    'sum(db_sessions{state="idle in transaction"}) + 1': {"exhausted_pool"},
    'sum(rate(errors_total{service="checkout",kind="tls"}[5m])) + 0.01': {"expired_certificate"},
    "sum(rate(db_pool_timeouts_total[5m])) + 0.01": {"exhausted_pool"},
    'rate(process_cpu_seconds_total{service="checkout"}[5m])': {"bad_deploy"},
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_shows_with_its_fault_and_with_no_other(sign: str, name: str) -> None:
    told = story(name)
    grown = value(told, sign, -1) / value(told, sign, -90)
    assert (grown > 1.6) == (name in SIGNS[sign]), grown


def test_a_certificate_has_ended_only_where_that_is_the_fault() -> None:
    ended = {
        name: value(story(name), "count(tls_certificate_not_after_timestamp_seconds < time()) or vector(0)")
        for name in SCENARIOS
    }
    assert [name for name, count in ended.items() if count] == ["expired_certificate"]


@pytest.mark.parametrize("name", ["exhausted_pool", "noisy_neighbour"])
def test_callers_slow_down_with_what_they_call_and_the_database_does_not(name: str) -> None:
    told = story(name)
    for service in ("gateway", "checkout", "stock"):
        assert value(told, P99 % service) > 2 * value(told, P99 % service, -90)
    query = "rate(db_query_duration_seconds_sum[5m]) / rate(db_query_duration_seconds_count[5m])"
    assert value(told, query) < 1.5 * value(told, query, -90)


@pytest.mark.parametrize("name", ["slow_dependency", "bad_deploy"])
def test_what_a_slow_service_calls_does_not_slow_down_itself(name: str) -> None:
    told = story(name)
    assert value(told, P99 % "checkout") > 2 * value(told, P99 % "checkout", -90)
    assert value(told, P99 % "stock") < 1.6 * value(told, P99 % "stock", -90)


def test_speed_lets_the_story_pass_faster_and_leaves_rates_alone() -> None:
    slow, fast = story("bad_deploy"), story("bad_deploy", speed=10)
    assert fast.moment(-16) == EVENING - 96
    visitors = 'sum(rate(http_requests_total{service="gateway",route="/checkout"}[1m]))'
    assert value(fast, visitors) == pytest.approx(value(slow, visitors), rel=0.25)

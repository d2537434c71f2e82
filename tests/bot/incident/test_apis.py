"""The APIs speak the words of Prometheus, Loki and Jaeger, in their answers and in their errors."""

import json
import time

from tests.bot.incident.conftest import Open
from tests.bot.incident.stories import EVENING

P99 = "histogram_quantile(0.99, sum by (service, route, le) (rate(http_request_duration_seconds_bucket[5m])))"


async def test_a_query_may_come_in_the_address_or_as_a_form(shop: Open) -> None:
    opened = await shop()
    got = await opened.get("/prometheus/api/v1/query", query="up", time=f"{EVENING}")
    posted = await opened.post("/prometheus/api/v1/query", query="up", time=f"{EVENING}")
    assert got == posted
    status, body = got
    assert (status, body["status"], body["data"]["resultType"]) == (200, "success", "vector")
    assert {each["metric"]["job"] for each in body["data"]["result"]} == {
        "gateway",
        "checkout",
        "stock",
        "database",
        "nodes",
    }
    assert {each["value"][1] for each in body["data"]["result"]} == {"1"}


async def test_six_hours_at_a_scrape_a_step_take_less_than_three_tenths_of_a_second(shop: Open) -> None:
    opened = await shop("bad_deploy")
    asked = {"query": P99, "start": f"{EVENING - 6 * 3_600}", "end": f"{EVENING}", "step": "15"}
    await opened.post("/prometheus/api/v1/query", query="up")
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        status, body = await opened.post("/prometheus/api/v1/query_range", **asked)
        took.append(time.perf_counter() - begin)
        assert (status, len(body["data"]["result"])) == (200, 5)
        assert len(body["data"]["result"][0]["values"]) == 1_441
    assert min(took) < 0.3


async def test_what_cannot_be_answered_is_refused_in_prometheus_form(shop: Open) -> None:
    opened = await shop()
    status, body = await opened.post("/prometheus/api/v1/query", query="rate(up)")
    assert (status, body["status"], body["errorType"]) == (400, "error", "bad_data")
    assert '1:6: parse error: expected type range vector in call to function "rate"' in body["error"]
    bounds = {"start": "0", "end": "1000000", "step": "1"}
    status, body = await opened.post("/prometheus/api/v1/query_range", query="up", **bounds)
    assert (status, body["errorType"]) == (400, "bad_data")
    assert "exceeded maximum resolution of 11,000 points per timeseries" in body["error"]
    status, body = await opened.post("/prometheus/api/v1/query", query="up * on(x) up")
    assert (status, body["errorType"]) == (422, "execution")
    status, body = await opened.post("/prometheus/api/v1/query", query="up", time="teatime")
    assert (status, 'cannot parse "teatime"' in body["error"]) == (400, True)


async def test_metrics_can_be_found_by_name_label_and_meaning(shop: Open) -> None:
    opened = await shop()
    _, names = await opened.get("/prometheus/api/v1/label/__name__/values")
    _, told = await opened.get("/prometheus/api/v1/metadata")
    known = set(told["data"])
    assert "db_sessions" in names["data"]
    for name in names["data"]:
        stem = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        assert name == "up" or {name, stem} & known, name
    some = {"match[]": '{__name__=~".*(?i:POOL).*"}'}
    _, pools = await opened.get("/prometheus/api/v1/label/__name__/values", **some)
    assert pools["data"] == [
        "db_pool_connections_in_use",
        "db_pool_connections_max",
        "db_pool_timeouts_total",
        "db_pool_waiting",
    ]
    _, series = await opened.get("/prometheus/api/v1/series", **{"match[]": "db_pool_waiting", "limit": "1"})
    assert len(series["data"]) == 1


async def test_the_alert_fires_where_something_is_wrong_and_nothing_fires_where_nothing_is(
    shop: Open,
) -> None:
    _, quiet = await (await shop()).get("/prometheus/api/v1/alerts")
    assert quiet["data"] == {"alerts": []}
    _, loud = await (await shop("slow_dependency")).get("/prometheus/api/v1/alerts")
    (alert,) = loud["data"]["alerts"]
    assert (alert["labels"]["alertname"], alert["state"]) == ("CheckoutLatencyHigh", "firing")
    _, failing = await (await shop("expired_certificate")).get("/prometheus/api/v1/alerts")
    names = {each["labels"]["alertname"] for each in failing["data"]["alerts"]}
    assert names == {"CheckoutErrorsHigh", "GatewayErrorsHigh"}


async def test_logs_are_filtered_by_label_by_text_and_by_field(shop: Open) -> None:
    opened = await shop("expired_certificate")
    query = '{service="checkout", level="error"} |= "stock.internal" != "nonsense" | json | status >= 500'
    status, body = await opened.get("/loki/api/v1/query_range", query=query, limit="7")
    assert (status, body["data"]["resultType"]) == (200, "streams")
    (stream,) = body["data"]["result"]
    assert stream["stream"] == {"service": "checkout", "level": "error"}
    assert len(stream["values"]) == 7
    times = [int(at) for at, _ in stream["values"]]
    assert times == sorted(times, reverse=True)
    assert max(times) <= (EVENING + 60) * 1e9
    for _, line in stream["values"]:
        record = json.loads(line)
        assert (record["dependency"], record["status"]) == ("stock", 502)
        assert len(record["trace_id"]) == 32


async def test_lines_are_counted_over_time(shop: Open) -> None:
    opened = await shop("expired_certificate")
    query = 'sum by (level) (count_over_time({service="gateway"}[5m]))'
    bounds = {"start": f"{EVENING - 1_800}", "end": f"{EVENING}", "step": "300"}
    _, body = await opened.get("/loki/api/v1/query_range", query=query, **bounds)
    errors = next(each for each in body["data"]["result"] if each["metric"] == {"level": "error"})
    counts = [float(value) for _, value in errors["values"]]
    assert counts[-1] > 20 > counts[0]


async def test_a_log_query_that_is_none_is_refused_in_lokis_words(shop: Open) -> None:
    opened = await shop()
    for query, words in {
        "error": "parse error at line 1, col 1: syntax error: unexpected 'error'",
        '{service="x"} | logfmt': "parse error at line 1, col 17",
        "{}": "queries require at least one regexp or equality matcher",
        '{service="x"} |= ': "unexpected end of input",
    }.items():
        status, body = await opened.get("/loki/api/v1/query_range", query=query)
        assert (status, words in body) == (400, True), body


async def test_a_trace_that_a_log_line_names_can_be_had(shop: Open) -> None:
    opened = await shop("exhausted_pool")
    query = '{service="stock"} |= "no connection from the pool"'
    _, body = await opened.get("/loki/api/v1/query_range", query=query, limit="1")
    trace_id = json.loads(body["data"]["result"][0]["values"][0][1])["trace_id"]
    status, found = await opened.get(f"/traces/api/traces/{trace_id}")
    assert status == 200
    spans = found["data"][0]["spans"]
    assert {each["processID"] for each in spans} >= {"gateway", "stock"}
    assert spans[0]["references"] == []
    status, _ = await opened.get(f"/traces/api/traces/{trace_id[:-1]}z")
    assert status == 404


async def test_slow_traces_can_be_searched(shop: Open) -> None:
    opened = await shop("slow_dependency")
    asked = {"service": "checkout", "minDuration": "1s", "limit": "3"}
    _, body = await opened.get("/traces/api/traces", **asked)
    assert len(body["data"]) == 3
    slowest = max(body["data"][0]["spans"][2:], key=lambda span: int(span["duration"]))
    assert slowest["operationName"] == "POST payments /charge"


async def test_another_story_is_served_at_once_when_it_is_chosen(shop: Open) -> None:
    opened = await shop()
    _, before = await opened.get("/prometheus/api/v1/query", query="sum(http_requests_total)")
    assert opened.incident.choose("expired_certificate") == "expired_certificate"
    _, after = await opened.get("/prometheus/api/v1/query", query="sum(http_requests_total)")
    assert before != after
    assert opened.incident.alert == "checkout errors above 5 %"

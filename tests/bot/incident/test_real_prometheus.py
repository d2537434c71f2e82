"""The real program agrees: it scrapes the shop, and answers the same queries over the same samples alike."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from bot.incident.app import incident_app
from bot.incident.exposition import family_of
from bot.incident.incident import Incident
from bot.incident.metrics import FAMILIES, JOBS
from bot.incident.prometheus_answers import matrix, number
from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.parser import parse
from tests.bot.incident.stories import EVENING, samples, story
from tests.servers.prometheus import Prometheus, promtool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.xdist_group("prometheus")]

START, END = EVENING - 3_600, EVENING
KEPT_S = 2.5 * 3_600
LATENCY = "http_request_duration_seconds"

QUERIES = (
    "up",
    'sum by (service, status) (rate(http_requests_total[5m]))',
    f"histogram_quantile(0.99, sum by (service, le) (rate({LATENCY}_bucket[5m])))",
    f'histogram_quantile(0.5, rate({LATENCY}_bucket{{service="checkout"}}[2m]))',
    f"sum(rate({LATENCY}_sum[5m])) by (service) / sum(rate({LATENCY}_count[5m])) by (service)",
    'sum by (service) (rate(http_requests_total{status=~"5.."}[5m])) '
    "/ on(service) sum by (service) (rate(http_requests_total[5m])) > 0.0004",
    "increase(errors_total[30m])",
    "irate(db_queries_total[1m])",
    "topk(2, sum by (service, route) (rate(http_requests_total[1m])))",
    "bottomk(1, db_sessions)",
    "quantile(0.9, db_sessions)",
    "avg_over_time(http_requests_in_flight[10m])",
    "max_over_time(http_requests_in_flight[10m]) - min_over_time(http_requests_in_flight[10m])",
    "stddev_over_time(cpu_pressure_ratio[20m])",
    "quantile_over_time(0.9, cpu_pressure_ratio[20m])",
    "deriv(process_resident_memory_bytes[15m])",
    "predict_linear(process_resident_memory_bytes[15m], 3600)",
    "changes(db_pool_connections_in_use[10m])",
    "max_over_time(sum(rate(http_requests_total[5m]))[30m:1m])",
    "rate(http_requests_total[5m]) - rate(http_requests_total[5m] offset 30m)",
    "db_pool_connections_in_use / ignoring() db_pool_connections_max",
    "rate(process_cpu_seconds_total[5m]) * on(service) group_left(version) "
    'deploy_info{version=~"5.12.0|2.31.0|3.7.2|14.9-3"}',
    "(tls_certificate_not_after_timestamp_seconds - time()) / 86400 < 10",
    "count by (state) (db_sessions > 0)",
    "absent(nothing_of_ours)",
    "db_sessions{client=\"stock\"} unless on(state) db_sessions{state=\"idle\"}",
    "stddev by (service) (cpu_pressure_ratio) or vector(7)",
    'clamp(label_replace(cpu_pressure_ratio, "machine", "m-$1", "node", "node-(.)"), 0.01, 0.5)',
    "workload_cpu_cores_used == bool 1",
    "scalar(up{job=\"stock\"}) * 3 ^ 2",
    "http_requests_in_flight @ end()",
)  # fmt: skip


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus whose storage holds our samples, each at its own time."""
    real = Prometheus(tmp_path_factory.mktemp("backfilled"))
    lines = []
    for series in samples(story("bad_deploy")).upto(END):
        labels = dict(series.labels)
        name = labels.pop("__name__")
        pairs = ",".join(f'{key}="{value}"' for key, value in labels.items())
        for at, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
            if at > END - KEPT_S and series.ended > END:
                lines.append(f"{name}{{{pairs}}} {number(value)} {at:.3f}")
    (real.folder / "samples").write_text("\n".join(lines) + "\n# EOF\n")
    promtool("tsdb", "create-blocks-from", "openmetrics", real.folder / "samples", real.folder / "data")
    child = real.start([])
    yield real
    child.terminate()
    child.wait(20)


def values(result: Any) -> dict[tuple[tuple[str, str], ...], dict[float, float]]:
    return {
        tuple(sorted(each["metric"].items())): {float(at): float(value) for at, value in each["values"]}
        for each in result
    }


@pytest.mark.parametrize("query", QUERIES)
def test_both_answer_the_same_query_alike(query: str, backfilled: Prometheus) -> None:
    bounds = {"start": str(START), "end": str(END), "step": "60"}
    theirs = values(backfilled.ask("query_range", query=query, **bounds)["result"])
    evaluator = Evaluator.between(samples(story("bad_deploy")).upto(END), START, END, 60)
    ours: Any = matrix(evaluator.value(parse(query)), evaluator.steps)
    mine = values(ours["result"])
    assert theirs, "the real one has no data"
    assert set(mine) == set(theirs)
    for labels, points in theirs.items():
        assert mine[labels] == pytest.approx(points, rel=1e-6, abs=1e-9, nan_ok=True), labels


async def test_it_scrapes_every_service_and_finds_what_we_say(tmp_path: Path) -> None:
    incident = Incident("bad_deploy", 7, EVENING, clock=lambda: EVENING + 60)
    incident.samples = samples(story("bad_deploy"))
    server, real = TestServer(incident_app(incident)), Prometheus(tmp_path)
    await server.start_server()
    address = f"127.0.0.1:{server.port}"
    scrape: list[dict[str, Any]] = [
        {
            "job_name": job,
            "metrics_path": f"/shop/{job}/metrics",
            "static_configs": [{"targets": [address], "labels": {"instance": f"{job}:8080"}}],
        }
        for job in JOBS
    ]
    child = real.start(scrape)
    try:
        assert await settled(real) == dict.fromkeys(JOBS, ("up", ""))
        await compare(real, incident)
    finally:
        await asyncio.to_thread(child.terminate)
        await asyncio.to_thread(child.wait, 20)
        await server.close()


async def settled(real: Prometheus) -> dict[str, tuple[str, str]]:
    """Health and last error of each job, once every one was scraped; discovery alone takes five seconds."""
    for _ in range(100):
        targets = (await asyncio.to_thread(real.ask, "targets"))["activeTargets"]
        found = {each["labels"]["job"]: (each["health"], each["lastError"]) for each in targets}
        if len(found) == len(JOBS) and all(health != "unknown" for health, _ in found.values()):
            return found
        await asyncio.sleep(0.3)
    pytest.fail(f"not scraped: {targets}")


async def compare(real: Prometheus, incident: Incident) -> None:
    """Every series that it has of us, and what it knows of the metrics."""
    wanted = '{job!="",__name__!~"scrape_.*|up"}'
    theirs = await asyncio.to_thread(real.ask, "query", query=wanted)
    now = incident.now()
    expected = {
        each.labels: float(each.values[-1])
        for each in incident.samples.upto(now)
        if each.ended > now and dict(each.labels)["__name__"] != "up"
    }
    assert {
        tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in theirs["result"]
    } == expected
    told = await asyncio.to_thread(real.ask, "metadata")
    assert {name: kinds[0]["type"] for name, kinds in told.items() if name in FAMILIES} == {
        name: kind for name, (kind, _) in FAMILIES.items()
    }
    assert {family_of(dict(labels)["__name__"]) for labels in expected} == set(FAMILIES)

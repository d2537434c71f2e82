"""The Prometheus tools against a real Prometheus."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from bot.ports import ToolCall
from bot.tools.prometheus import PrometheusProvider
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass
from tests.bot.tools.conftest import Prometheus

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("prometheus")]


class Tools:
    """A tool box that holds only Prometheus."""

    def __init__(self, url: str) -> None:
        self.box = ToolBox([PrometheusProvider(url)], Redactor([]))

    async def __call__(self, tool: str, **arguments: Json) -> CallResult:
        return await self.box.run(ToolCall("call_1", f"prometheus_{tool}", arguments), asyncio.Event())


@pytest.fixture
async def tools(prometheus: Prometheus) -> AsyncIterator[Tools]:
    found = Tools(prometheus.url)
    await found.box.start()
    yield found
    await found.box.close()


async def test_a_server_that_answers_is_ready_and_its_tools_only_read(tools: Tools) -> None:
    assert await tools.box.ready() == []
    assert len(tools.box.specs()) == 5
    assert all(spec.tool_class is ToolClass.READ_ONLY and spec.interruptible for spec in tools.box.specs())


async def test_an_instant_query_gives_labels_and_values(tools: Tools) -> None:
    result = await tools("query", query='up{job="shop"}')
    assert result.outcome is Outcome.OK
    assert 'up{instance="127.0.0.1:' in result.text
    assert result.text.endswith(" 1")
    assert result.query == 'up{job="shop"}'
    assert result.time_range.endswith("Z")


async def test_a_scalar_is_given_as_it_is(tools: Tools) -> None:
    assert (await tools("query", query="1 + 1")).text.startswith("2 at ")


async def test_a_range_gives_statistics_for_each_series_and_a_chart(tools: Tools) -> None:
    result = await tools("range", query="shop_latency_seconds", start="-1m", step="1s", unit="seconds")
    assert result.outcome is Outcome.OK
    assert result.text.startswith("1 series, ")
    for word in ("first ", "last ", "min ", "max ", "mean ", "p95 ", "trend", "biggest jump "):
        assert word in result.text
    assert result.charts[0].png.startswith(b"\x89PNG")
    assert result.charts[0].title == "shop_latency_seconds"
    assert " to " in result.time_range


async def test_at_most_twenty_series_are_told_and_the_rest_is_counted(tools: Tools) -> None:
    result = await tools("range", query="shop_items", start="-30s")
    assert result.text.startswith("30 series")
    assert 'shelf="29"' in result.text
    assert 'shelf="05"' not in result.text
    assert "10 more series are not shown" in result.text


async def test_a_query_that_does_not_parse_says_where(tools: Tools) -> None:
    result = await tools("query", query="sum(rate(up[5m])")
    assert result.outcome is Outcome.ERROR
    assert "does not parse: at line 1, character 17" in result.text
    assert result.query == "sum(rate(up[5m])"


async def test_no_data_names_the_metrics_that_are_nearest(tools: Tools) -> None:
    result = await tools("query", query='sum(rate(shop_order_total{service="x"}[5m])) by (service)')
    assert result.outcome is Outcome.OK
    assert "no data" in result.text
    assert "There is no metric shop_order_total; near to it: shop_orders_total" in result.text


async def test_no_data_for_a_metric_that_exists_names_its_labels(tools: Tools) -> None:
    result = await tools("range", query='shop_latency_seconds{service="chekout"}', start="-5m")
    assert "The metric shop_latency_seconds exists" in result.text
    assert "service=checkout" in result.text


async def test_too_many_points_name_a_step_that_fits(tools: Tools) -> None:
    result = await tools("range", query="up", start="-7d", step="1s")
    assert result.outcome is Outcome.ERROR
    assert "too many points: 604800" in result.text
    assert "use a step of 3600s or more" in result.text


async def test_a_time_that_is_none_is_refused_with_the_forms_that_are(tools: Tools) -> None:
    result = await tools("range", query="up", start="yesterday")
    assert result.outcome is Outcome.ERROR
    assert "'yesterday' is no time; use RFC 3339" in result.text


async def test_an_empty_range_is_refused(tools: Tools) -> None:
    assert "the range is empty" in (await tools("range", query="up", start="now", end="-1h")).text


async def test_alerts_are_told_with_labels_and_summary(tools: Tools) -> None:
    result = await tools("alerts")
    assert result.text.startswith("1 firing:")
    assert 'firing ShopIsSlow{instance="' in result.text
    assert "The shop answers late" in result.text
    assert (await tools("alerts", match="database")).text == "none of the 1 active alerts holds 'database'"


async def test_a_target_that_is_down_is_told_with_the_reason(tools: Tools) -> None:
    text = (await tools("targets")).text
    assert "job shop: 1 up" in text
    assert "job gone: 1 down" in text
    assert "connection refused" in text
    assert (
        "no target of job 'nosuch'; jobs: gone, prometheus, shop"
        in (await tools("targets", job="nosuch")).text
    )


async def test_metrics_are_found_by_a_part_of_their_name(tools: Tools) -> None:
    text = (await tools("metadata", pattern="shop_")).text
    assert text.startswith("3 metrics match:")
    assert "shop_orders_total (counter) Orders so far." in text
    assert "service=checkout" in text
    assert "near to it: shop_latency_seconds" in (await tools("metadata", pattern="shop_latncy")).text


async def test_a_query_is_stopped_in_a_hurry(prometheus: Prometheus) -> None:
    """A listener that never answers stands for a query that takes long."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    tools = Tools(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    hurry = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, hurry.set)
    began = time.monotonic()
    result = await tools.box.run(ToolCall("call_1", "prometheus_query", {"query": "up"}), hurry)
    assert result.outcome is Outcome.STOPPED
    assert time.monotonic() - began < 0.6
    await tools.box.close()
    for writer in held:
        writer.close()
    server.close()
    await server.wait_closed()


async def test_a_server_that_is_away_is_named_missing_and_its_tools_say_so() -> None:
    tools = Tools("http://127.0.0.1:1")
    assert (await tools.box.ready())[0].startswith("prometheus does not answer: Prometheus cannot be reached")
    result = await tools("query", query="up")
    assert result.outcome is Outcome.ERROR
    assert "cannot be reached" in result.text
    await tools.box.close()

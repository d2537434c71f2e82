"""The log tools against a server that speaks Loki's API."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from bot.ports import ToolCall
from bot.tools.logs import LogsProvider
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass
from tests.servers.loki import LokiServer

pytestmark = pytest.mark.slow  # most answers draw a chart

CHECKOUT = {"app": "checkout", "env": "prod"}


class Tools:
    """A tool box that holds only the logs."""

    def __init__(self, url: str, org: str | None = None) -> None:
        self.box = ToolBox([LogsProvider(url, org)], Redactor([]))
        self.hurry = asyncio.Event()

    async def __call__(self, tool: str, **arguments: Json) -> CallResult:
        return await self.box.run(ToolCall("call_1", f"logs_{tool}", arguments), self.hurry)


@pytest.fixture
async def loki() -> AsyncIterator[LokiServer]:
    async with LokiServer() as server:
        now = time.time()
        for minute in range(30):
            at = now - 1_750 + 58 * minute
            server.push(
                CHECKOUT,
                (at, f'level=info msg="order {4000 + minute} placed" user=u{minute}'),
                *(
                    (at + n, f'level=error msg="no connection within {n}00 ms" pool=main')
                    for n in range(minute > 20)
                ),
            )
        server.push(
            {"app": "gateway", "env": "prod"}, (now - 60, '{"level": "warn", "msg": "slow upstream"}')
        )
        yield server


@pytest.fixture
async def tools(loki: LokiServer) -> AsyncIterator[Tools]:
    found = Tools(loki.url)
    await found.box.start()
    yield found
    await found.box.close()


async def test_both_tools_only_read_and_may_be_interrupted(tools: Tools) -> None:
    assert [spec.name for spec in tools.box.specs()] == ["logs_query", "logs_labels"]
    assert all(spec.tool_class is ToolClass.READ_ONLY and spec.interruptible for spec in tools.box.specs())
    assert await tools.box.ready() == []


async def test_lines_are_counted_by_level_and_grouped_by_pattern(tools: Tools) -> None:
    result = await tools("query", query='{app="checkout"}')
    assert result.outcome is Outcome.OK
    assert result.text.startswith("39 lines, ")
    assert 'all from {app="checkout", env="prod"}' in result.text
    assert "\nerror: 9 lines; per minute: first 0, last " in result.text
    assert "\ninfo: 30 lines; per minute: " in result.text
    assert "2 message patterns, the most frequent first:" in result.text
    assert "30x info, " in result.text
    assert ": order <n> placed\n" in result.text
    assert ": no connection within <n> ms\n" in result.text
    assert "    such as: level=error msg=" in result.text
    assert "first lines:" in result.text
    assert "last lines:" in result.text


async def test_the_evidence_says_what_was_asked_and_people_see_a_chart(tools: Tools) -> None:
    result = await tools("query", query='{app="checkout"} |= "error"', start="-30m")
    assert result.query == '{app="checkout"} |= "error"'
    assert " to " in result.time_range
    assert result.charts[0].png.startswith(b"\x89PNG")
    assert result.charts[0].title == '{app="checkout"} |= "error"'


async def test_levels_are_read_from_json_too(tools: Tools) -> None:
    result = await tools("query", query='{app="gateway"} | json')
    assert "warn: 1 lines" in result.text
    assert ": slow upstream" in result.text


async def test_past_the_limit_loki_counts_and_the_answer_says_what_covers_what(
    tools: Tools, loki: LokiServer
) -> None:
    result = await tools("query", query='{app="checkout"} |= "order"', limit=10)
    assert result.text.startswith("the newest 10 lines (")
    assert "counts are of all lines of the range; patterns are of the lines that were read" in result.text
    assert "no level: 30 lines" in result.text
    loki.metrics = False
    result = await tools("query", query='{app="checkout"}', limit=10)
    assert "counts are of only the lines that were read" in result.text


async def test_a_metric_query_gives_statistics_and_a_chart(tools: Tools) -> None:
    result = await tools("query", query='sum by (app) (count_over_time({env="prod"}[1m]))', start="-30m")
    assert result.outcome is Outcome.OK
    assert result.text.startswith("2 series, ")
    assert '{app="checkout"}: ' in result.text
    assert result.charts


async def test_no_lines_name_the_value_that_is_nearest(tools: Tools) -> None:
    result = await tools("query", query='{app="chekout"}')
    assert result.outcome is Outcome.OK
    assert "no lines for " in result.text
    assert "app has no value 'chekout' in this range; near to it: checkout." in result.text
    result = await tools("query", query='{ap="checkout"}')
    assert "There is no label ap in this range; there are: app." in result.text
    assert "The labels exist" in (await tools("query", query='{app="checkout"} |= "nothing"')).text


async def test_a_query_that_does_not_parse_says_where(tools: Tools) -> None:
    result = await tools("query", query='{app="checkout"')
    assert result.outcome is Outcome.ERROR
    assert "does not parse: at line 1, character 16" in result.text
    assert result.query == '{app="checkout"'


async def test_a_selector_of_everything_is_told_to_name_a_label(tools: Tools) -> None:
    result = await tools("query", query="{}")
    assert result.outcome is Outcome.ERROR
    assert 'Name at least one label with a value, like {app="x"}; logs_labels lists them' in result.text


@pytest.mark.parametrize(
    "failure, words",
    [
        ((429, "too many outstanding requests"), "ask again later"),
        ((500, "context deadline exceeded"), "shorten the range"),
        ((404, "not found"), "correct url in [tools.logs]"),
        ((400, "pipeline error: 'JSONParserErr' for series"), 'Add | __error__=""'),
        ((200, "<html>a proxy</html>"), "that is no answer of Loki's API"),
    ],
)
async def test_each_refusal_says_what_to_try(
    tools: Tools, loki: LokiServer, failure: tuple[int, str], words: str
) -> None:
    loki.fails = failure
    result = await tools("query", query='{app="checkout"}')
    assert result.outcome is Outcome.ERROR
    assert words in result.text


async def test_a_range_that_is_too_long_or_no_range_is_refused_with_the_mend(tools: Tools) -> None:
    assert "Use a shorter one" in (await tools("query", query='{app="checkout"}', start="-60d")).text
    assert "the range is empty" in (await tools("query", query='{app="checkout"}', start="+1h")).text
    assert "is no time; use RFC 3339" in (await tools("query", query='{app="checkout"}', start="noon")).text


async def test_a_tenant_is_sent_and_its_absence_is_told(loki: LokiServer, tools: Tools) -> None:
    loki.org = "shop"
    assert "a person has to set org" in (await tools("query", query='{app="checkout"}')).text
    ours = Tools(loki.url, "shop")
    assert (await ours("query", query='{app="checkout"}')).outcome is Outcome.OK
    await ours.box.close()


async def test_labels_are_an_overview_and_one_label_is_told_in_full(tools: Tools) -> None:
    assert (await tools("labels")).text == "app (2): checkout, gateway\nenv (1): prod"
    assert (await tools("labels", label="app")).text == "app has 2 values: checkout, gateway"
    assert (await tools("labels", label="app", match='{app=~"g.+"}')).text == "app has 1 values: gateway"
    assert "no label 'pod' in this range; labels: app, env" in (await tools("labels", label="pod")).text
    assert "Try a longer range" in (await tools("labels", start="-9h", end="-8h")).text


async def test_secrets_in_lines_do_not_come_through(tools: Tools, loki: LokiServer) -> None:
    loki.push({"app": "leak"}, (time.time() - 5, "login with password=hunter2hunter2 failed"))
    result = await tools("query", query='{app="leak"}')
    assert "hunter2" not in result.text
    assert "[redacted:" in result.text


async def test_a_query_in_a_hurry_really_stops(tools: Tools, loki: LokiServer) -> None:
    loki.hold = asyncio.Event()
    asking = asyncio.create_task(tools("query", query='{app="checkout"}'))
    while not loki.asked:
        await asyncio.sleep(0.01)
    tools.hurry.set()
    result = await asking
    assert result.outcome is Outcome.STOPPED
    async with asyncio.timeout(5):
        await loki.broken_off.wait()


async def test_a_loki_that_is_not_there_is_told() -> None:
    tools = Tools("http://127.0.0.1:1")
    (line,) = await tools.box.ready()
    assert "the logs cannot be reached" in line
    await tools.box.close()

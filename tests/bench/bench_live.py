"""How late the event loop of one process is while fifty analyses are live.

A real `serve` process; Slack and the model are one process beside it, the tools another. Each model request
is answered with a stream of a realistic pace, then asks for three calls at once that take a second; so often
that all fifty are live for a while. The lag is the program's own measure (`watchkeeper_loop_lag_seconds`),
taken every 10 ms instead of every 250, over the time in which all fifty were live.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.bench.bench_fleet_turns import postgres
from tests.bench.rig import Serve, line_of, program, verdict
from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.slack import SlackServer
from tests.stories.room import eventually

LIVE = 50
STEPS = 4
EVENTS_A_SECOND = 40  # of each stream, 16 characters in each
EVENTS = 160
TOOL_S = 1.0
AIM_MS = 50.0
OFTEN = "import bot.measures; bot.measures.LOOP_EVERY_S = 0.01"
PROBE = Path(__file__).parents[1] / "servers/mcp_probe.py"
CONFIG = f"""
[worker]
max_turns = {LIVE}
[[mcp]]
name = "probe"
command = [{json.dumps(sys.executable)}, {json.dumps(str(PROBE))}, "--log", "probe.jsonl"]
"""


def answer(request: ModelRequest) -> Reply:
    """Some words, then three calls; in the end only words."""
    steps = sum(message["role"] == "assistant" for message in request.body["messages"])
    words = text("It may be the deploy. " * (EVENTS * 16 // 22))
    calls = [call("probe__slow", {"seconds": TOOL_S, "text": f"look {n}"}) for n in range(3)]
    said = reply(words, *(calls if steps < STEPS else []))
    return said.chunked(16).paced(1 / EVENTS_A_SECOND)


def world() -> None:
    """Slack and the model; for each line read, fifty people ask in threads of their own."""

    async def run() -> None:
        async with SlackServer() as slack, AnthropicServer() as model:
            model.reply_with(answer)
            print(json.dumps({
                "SLACK_BOT_TOKEN": slack.bot_token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
                "ANTHROPIC_BASE_URL": model.url,
            }), flush=True)  # fmt: skip
            await asyncio.to_thread(sys.stdin.readline)
            for number in range(LIVE):
                await slack.say("Ana", "#inc", f"why is checkout slow, number {number}?", mention=True)
            await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The address of an empty one."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'watchkeeper.db'}"
        return
    with postgres() as server:
        yield asyncio.run(server.create("live"))


def metrics(serve: Serve) -> dict[str, float]:
    """Every sample of /metrics that bears the lag, and how many turns there are."""
    with urllib.request.urlopen(f"http://127.0.0.1:{serve.port}/metrics", timeout=20) as answered:
        found = answered.read().decode()
    samples = [sample for family in text_string_to_metric_families(found) for sample in family.samples]
    lags = {sample.labels["le"]: sample.value for sample in samples
            if sample.name == "watchkeeper_loop_lag_seconds_bucket"}  # fmt: skip
    settled = sum(sample.value for sample in samples if sample.name == "watchkeeper_turns_settled_total")
    return {**lags, "settled": settled}


def quantile_ms(lags: dict[float, float], q: float) -> float:
    """Between the bounds of a histogram's bucket, as Prometheus reads it."""
    total, below, lower = max(lags.values()), 0.0, 0.0
    for bound, count in sorted(lags.items()):
        if count >= q * total:
            share = (q * total - below) / max(1.0, count - below)
            return 1000 * (lower + (min(bound, 10.0) - lower) * share)
        below, lower = count, bound
    raise AssertionError("unreachable")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_fifty_live_analyses(kind: str, tmp_path: Path) -> None:
    with (
        database(kind, tmp_path) as url,
        program("-c", "from tests.bench.bench_live import world; world()") as beside,
    ):
        serve = Serve(tmp_path, {**json.loads(line_of(beside)), "DATABASE_URL": url}, CONFIG, OFTEN)
        try:
            asyncio.run(measured(serve, beside, kind))
        finally:
            serve.stop()


async def measured(serve: Serve, beside: subprocess.Popen[str], kind: str) -> None:
    """Let fifty people ask, and measure from when all are live until the first is answered."""
    await serve.start(within_s=60)
    await asyncio.sleep(2)
    assert beside.stdin is not None
    beside.stdin.write("go\n")

    async def all_live() -> bool:
        return serve.log.read_text().count("started") >= LIVE

    await eventually(all_live, timeout=60)
    await asyncio.sleep(1)
    process = psutil.Process(serve.pid)
    before, cpu = await asyncio.to_thread(metrics, serve), sum(process.cpu_times()[:2])
    began = asyncio.get_running_loop().time()

    async def first_answered() -> bool:
        return serve.log.read_text().count("reason=completed") > 0 or '"completed"' in serve.log.read_text()

    await eventually(first_answered, timeout=120)
    took = asyncio.get_running_loop().time() - began
    after, cpu = await asyncio.to_thread(metrics, serve), sum(process.cpu_times()[:2]) - cpu
    lags = {float(bound): after[bound] - before[bound] for bound in before if bound != "settled"}
    p50, p99, most = (quantile_ms(lags, q) for q in (0.5, 0.99, 1.0))
    print(f"\n{LIVE} live analyses on {kind} for {took:.0f} s, {EVENTS_A_SECOND} events a second each; "
          f"settled within that time {after['settled'] - before['settled']:.0f}")  # fmt: skip
    print(f"  loop lag p50 {p50:.1f} ms, p99 {p99:.1f} ms, slowest at most {most:.0f} ms "
          f"({max(lags.values()):.0f} looks); CPU {100 * cpu / took:.0f} % of one core")  # fmt: skip
    print(" ", verdict("loop lag p99", p99, AIM_MS, " ms"))

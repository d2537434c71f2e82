"""How soon a real `serve` process is ready, and how much memory it holds before and after an analysis."""

from __future__ import annotations

import statistics
from pathlib import Path

import psutil

from tests.bench.rig import Serve, verdict
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.slack import SlackServer
from tests.stories.room import eventually

STARTS = 3
BEFORE_AIM, AFTER_AIM = 150.0, 230.0  # MiB
MIB = 1024 * 1024


def resident(serve: Serve) -> float:
    """MiB of the process and of what it has started."""
    process = psutil.Process(serve.pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / MIB


async def started(folder: Path) -> tuple[float, float, float]:
    """Seconds to ready, MiB before the first analysis, MiB after it."""
    folder.mkdir()
    async with SlackServer() as slack, AnthropicServer() as model:
        model.reply_always(reply(text("It is the deploy: it removed an index.")))
        environment = {
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_APP_TOKEN": slack.app_token,
            "SLACK_API_URL": slack.api_url,
            "ANTHROPIC_BASE_URL": model.url,
        }
        serve = Serve(folder, environment)
        try:
            ready_s = await serve.start()
            await slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=10)
            before = resident(serve)
            await slack.say("Ana", "#inc", "why is checkout slow?", mention=True)

            async def answered() -> bool:
                return bool(slack.of_type("watchkeeper_answer"))

            await eventually(answered, timeout=20)
            return ready_s, before, resident(serve)
        finally:
            serve.stop()


async def test_start_and_memory(tmp_path: Path) -> None:
    ready, before, after = zip(
        *[await started(tmp_path / f"start {number}") for number in range(STARTS)], strict=True
    )
    print(f"\nfrom exec to a 200 of /readyz: {statistics.median(ready):.2f} s (median of {STARTS})")
    print(f"  {', '.join(f'{one:.2f}' for one in ready)} s")
    print(" ", verdict("memory before the first analysis", statistics.median(before), BEFORE_AIM, " MiB"))
    print(" ", verdict("memory after it", statistics.median(after), AFTER_AIM, " MiB"))

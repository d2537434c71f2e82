"""A real Prometheus, asked within an analysis; its chart goes to the thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.tools.conftest import Prometheus, prometheus
from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.telling import ANSWER, NOTE, ask, story

__all__ = ["prometheus"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("prometheus")]


async def test_a_question_to_prometheus_ends_in_an_answer_with_a_chart(
    tmp_path: Path, prometheus: Prometheus
) -> None:
    async with story(tmp_path, more=f'\n[tools.prometheus]\nurl = "{prometheus.url}"\n') as room:
        asked = {"query": "shop_latency_seconds", "start": "-1m"}
        room.model.script(
            reply(
                call("prometheus_range", asked),
                call("prometheus_query", {"query": "up"}),
                call("prometheus_alerts", {}),
                call("prometheus_query", {"query": "this is no promql ("}),
            ),
            reply(text("The shop is slow [c1], the alert fires [c3].")),
        )
        ts = await ask(room)
        await room.until_settled("completed")
        told = list(room.model.requests[1].tool_results().values())
        assert "checkout" in told[0].text
        assert "gone" in told[1].text
        assert "ShopIsSlow" in told[2].text
        assert [result.is_error for result in told] == [False, False, False, True]
        await room.slack.wait_for(lambda slack: slack.of_type(NOTE), timeout=20)
        [chart] = room.slack.of_type(NOTE)
        assert chart.metadata is not None
        assert chart.metadata["event_payload"]["kind"] == "chart"
        assert chart.thread_ts == ts
        [image] = [block for block in chart.blocks if block["type"] == "image"]
        file = room.slack.files[image["slack_file"]["id"]]
        assert file.content is not None
        assert file.content.startswith(b"\x89PNG")
        [answer] = room.slack.of_type(ANSWER)
        assert "shop_latency_seconds" in str(answer.blocks)
        assert "1m" in str(answer.blocks) or "20" in str(answer.blocks)

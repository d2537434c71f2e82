"""Slack's own limits, at Slack's own pace: nothing is sent too early, and nothing is lost for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.stories.room import Room, eventually
from tests.stories.telling import CARD, must_be_well


@pytest.mark.slow
async def test_six_analyses_at_once_keep_slacks_pace_and_all_are_shown(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Reply:
        if len(request.calls()) < 12:
            return reply(*(call("probe__slow", {"seconds": 0.2, "text": "x"}) for _ in range(3)))
        return reply(text("it is the deploy [c1]"))

    async with Room(tmp_path, rate_factor=1, card_interval_s=0.3, slack={"rate_scale": 1}) as room:
        await room.start()
        room.model.reply_with(answer)
        for number in range(6):
            await room.slack.say("Ana", "#inc", f"why is service {number} slow?", mention=True)

        async def all_shown() -> bool:
            records = await room.settles()
            return len(records) == 6 and all(r["card_released_at"] and r["answer_posted_at"] for r in records)

        await eventually(all_shown, timeout=50)
        limited = [c for c in room.slack.calls if c.status == 429]
        assert (
            len(limited) <= 2
        )  # a busy machine lets calls bunch up on their way; Slack said when to come back
        assert len(room.slack.of_type(CARD)) == 6
        await must_be_well(room)

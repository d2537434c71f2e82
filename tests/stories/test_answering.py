"""From a mention to an answer."""

from __future__ import annotations

from pathlib import Path

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.telling import story


async def test_a_mention_is_answered_in_its_thread(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(call("probe__fast", {"text": "a"}), call("probe__fast", {"text": "b"})),
            reply(text("The deploy removed an index. [c1]")),
        )
        ts = await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        [record] = await room.until_settled("completed")
        assert record["thread"] == ts
        [answer] = room.posts("watchkeeper_answer")
        assert "The deploy removed an index" in answer["text"]
        assert room.slack.reactions(ts) == {"white_check_mark": [room.slack.bot_user_id]}

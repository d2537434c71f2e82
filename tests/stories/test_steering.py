"""While it works, people talk to it: a reply steers the analysis at its safe points."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.room import Room, eventually


async def held_call(room: Room, name: str, tool: str = "probe__hold") -> object:
    """A call that the tool server holds until it is released."""
    return call(tool, {"name": name, "directory": str(room.folder)})


async def reached(room: Room, name: str) -> None:
    async def there() -> bool:
        return (room.folder / f"{name}.reached").exists()

    await eventually(there, timeout=30)


def release(room: Room, name: str) -> None:
    (room.folder / f"{name}.release").touch()


async def test_a_steer_waits_for_the_open_calls_and_starts_the_next_turn(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.model.script(
            reply(call("probe__hold_write", {"name": "w", "directory": str(tmp_path)}), call("probe__fast", {"text": "b"})),
            reply(text("the deploy removed an index")),
        )
        ts = await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        await reached(room, "w")
        steer = await room.slack.say("Ben", "#inc", "look at the 14:05 deploy", thread=ts)
        await asyncio.sleep(0.3)
        assert len(room.model.requests) == 1
        assert await room.settles() == []
        release(room, "w")
        first, second = await room.until_settled("steered", "completed")
        assert second["resumes_turn_id"] == first["turn_id"]
        assert first["cut_by"] == "U0BEN00001" or first["cut_by"]
        assert room.model.requests[-1].ends_with("look at the 14:05 deploy\n</message>")
        assert "look at the 14:05 deploy" in "".join(room.model.requests[1].user_texts())
        assert room.slack.reactions(steer) == {"white_check_mark": [room.slack.bot_user_id]}
        assert room.slack.card_faults() == []
        assert not room.model.refused


async def test_a_steer_while_the_model_generates_breaks_the_stream_off(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        gate = room.model.gate("middle")
        room.model.script(
            reply(text("I think it is the "), gate, text("database")),
            reply(text("it is the deploy")),
        )
        ts = await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        await gate.reached(timeout=30)
        await room.slack.say("Ben", "#inc", "look at the deploy", thread=ts)
        await room.until_settled("steered", "completed")
        assert room.model.requests[0].closed_at is not None
        gate.release()
        assert len(room.slack.of_type("watchkeeper_card")) == 1
        assert room.slack.card_faults() == []
        assert not room.model.refused


async def test_a_finished_text_that_a_steer_overtook_is_posted_as_a_note(tmp_path: Path) -> None:
    """The steer is decided between the last event of the stream and the settle."""
    async with Room(tmp_path, gather_s=0) as room:
        await room.start()
        ts = ""

        async def steer_before_the_end(request_no: int, event_no: int, name: str) -> None:
            if request_no == 1 and name == "message_stop":
                await room.slack.say("Ben", "#inc", "look at the deploy", thread=ts)
                await asyncio.sleep(0.02)

        room.model.on_event = steer_before_the_end
        room.model.script(reply(text("it is the database")), reply(text("it is the deploy")))
        ts = await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        await eventually(lambda: _done(room), timeout=30)
        records = await room.settles()
        assert records[-1]["reason"] == "completed"
        assert room.slack.card_faults() == []


async def _done(room: Room) -> bool:
    records = await room.settles()
    return bool(records) and records[-1]["reason"] == "completed" and bool(records[-1]["card_released_at"])

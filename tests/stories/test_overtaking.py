"""A steer is decided before the end, and wins, or after it, and starts the next turn; never in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import overloaded, refusal, reply
from tests.stories.room import Room, eventually
from tests.stories.telling import (
    ANSWER,
    ask,
    effects,
    held,
    locked,
    notes,
    receipt,
    release,
    reply_to,
    said_by_people,
    story,
    until_card_says,
    until_reached,
)

DEPLOY = "look at the 14:05 deploy"


async def in_front_of_the_commit(room: Room, thread: str, words: str) -> None:
    """Ben's message is first in the database's line of writers, and what the turn writes is behind it."""
    finished = len([request for request in room.model.requests if request.finished_ns])
    known = room.slack.hang("users.info", when=lambda args: args["user"] == "U0BEN00001")
    room.model.on_event = None
    await room.slack.say("Ben", "#inc", words, thread=thread)
    await room.slack.wait_for(lambda _: known.waiting)
    async with locked(room):
        known.release()
        await asyncio.sleep(0.2)
        room.model.let_events_go()
        await eventually(lambda: has_finished(room, finished + 1))
        await asyncio.sleep(0.2)


async def has_finished(room: Room, count: int) -> bool:
    """Whether so many answers of the model have been sent whole."""
    return len([request for request in room.model.requests if request.finished_ns]) >= count


async def hold_before_message_stop(room: Room) -> None:
    """Let the stream under way go on to its last event and hold it there."""
    while (await room.model.next_event(timeout=20)).name != "message_stop":
        await room.model.step()


async def test_no_call_is_opened_after_a_steer_was_decided(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(call("probe__restart", {"service": "shop"})), reply(text("it is the deploy")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, f"don't restart, {DEPLOY}")
        await room.until_settled("steered", "completed")
        assert room.tool_events() == []
        assert room.model.requests[0].finished_ns is not None
        assert room.model.requests[1].calls() == {}
        assert said_by_people(room.model.requests[1])[1] == f"don't restart, {DEPLOY}"


async def test_no_call_is_opened_after_a_stop_was_decided(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(call("probe__restart", {"service": "shop"})))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, "!stop")
        await room.until_settled("stopped")
        assert room.tool_events() == []


async def test_a_finished_text_that_a_steer_overtook_is_a_note_and_no_answer(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(text("it is the database")), reply(text("it is the deploy")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, DEPLOY)
        first, _ = await room.until_settled("steered", "completed")
        assert first["final_event_id"] is None
        [note] = notes(room, "partial")
        assert "What I had when you wrote" in note
        assert "it is the database" in note
        [answer] = room.posts(ANSWER)
        assert "it is the deploy" in answer["text"]
        assert room.model.requests[1].assistant_texts() == ["it is the database"]
        assert said_by_people(room.model.requests[1])[-1] == DEPLOY


async def test_a_finished_text_that_a_stop_overtook_is_a_note_and_no_answer(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(text("it is the database")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, "!stop")
        await room.until_settled("stopped")
        assert "it is the database" in notes(room, "partial")[0]
        assert room.posts(ANSWER) == []


async def test_an_empty_end_that_a_steer_overtook_is_a_cut_and_says_nothing(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(), reply(text("it is the deploy")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, DEPLOY)
        await room.until_settled("steered", "completed")
        assert room.posts() == []


async def test_a_steer_that_comes_right_after_the_end_starts_the_next_turn(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(text("it is the database")), reply(text("it is the deploy")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        async with locked(room):
            room.model.let_events_go()
            await eventually(lambda: has_finished(room, 1))
            await asyncio.sleep(0.2)
            await room.slack.say("Ben", "#inc", DEPLOY, thread=thread)
            await asyncio.sleep(0.1)
        await room.until_settled("completed", "completed")
        assert await effects(room, thread) == ["start", "start"]
        assert notes(room, "partial") == []


async def test_after_two_discarded_generations_the_third_runs_to_its_commit(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        gates = [room.model.gate(f"gate {number}") for number in range(3)]
        room.model.script(
            reply(text("one"), gates[0]),
            reply(text("two"), gates[1]),
            reply(text("three"), gates[2], held(room, "a", "probe__hold_write")),
            reply(text("it is the deploy")),
        )
        thread = await ask(room)
        for number, gate in enumerate(gates):
            await gate.reached(timeout=30)
            await reply_to(room, thread, f"steer {number}")
        third = await reply_to(room, thread, "steer 3")
        await asyncio.sleep(0.3)
        assert [request.is_open for request in room.model.requests] == [False, False, True]
        gates[2].release()
        await until_reached(room, "a")
        release(room, "a")
        await room.until_settled("steered", "steered", "steered", "completed")
        assert len(room.model.requests) == 4
        assert said_by_people(room.model.requests[2])[1:] == ["steer 0", "steer 1"]
        assert said_by_people(room.model.requests[3])[1:] == ["steer 0", "steer 1", "steer 2", "steer 3"]
        assert list(room.model.requests[3].calls().values()) == ["probe__hold_write"]
        assert receipt(room, third) == ["white_check_mark"]


async def test_a_third_generation_that_ends_in_text_is_a_note_and_the_steer_is_read_next(
    tmp_path: Path,
) -> None:
    async with story(tmp_path, gather_s=0) as room:
        gates = [room.model.gate(f"gate {number}") for number in range(3)]
        room.model.script(
            *(reply(text(f"thought {number}"), gate) for number, gate in enumerate(gates)),
            reply(text("it is the deploy")),
        )
        thread = await ask(room)
        for number, gate in enumerate(gates):
            await gate.reached(timeout=30)
            await reply_to(room, thread, f"steer {number}")
        gates[2].release()
        await room.until_settled("steered", "steered", "steered", "completed")
        assert "thought 2" in notes(room, "partial")[0]
        assert said_by_people(room.model.last_request)[-1] == "steer 2"


async def test_a_stop_breaks_off_even_the_third_generation(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        gates = [room.model.gate(f"gate {number}") for number in range(3)]
        room.model.script(*(reply(text("thinking"), gate) for gate in gates))
        thread = await ask(room)
        for number, gate in enumerate(gates[:2]):
            await gate.reached(timeout=30)
            await reply_to(room, thread, f"steer {number}")
        await gates[2].reached(timeout=30)
        await reply_to(room, thread, "!stop")
        await room.until_settled("steered", "steered", "stopped")
        assert room.model.requests[2].closed_at is not None


async def test_a_failure_that_a_steer_overtook_is_a_cut_and_tells_nobody_of_it(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(refusal(text("I would")), reply(text("it is the deploy")))
        room.model.hold_every_event()
        thread = await ask(room)
        await hold_before_message_stop(room)
        await in_front_of_the_commit(room, thread, DEPLOY)
        await room.until_settled("steered", "completed")
        assert room.posts() == []


async def test_steers_while_an_overloaded_model_is_waited_for_discard_nothing(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0, retry_for_s=60) as room:
        room.model.fail_next(50, overloaded())
        thread = await ask(room)
        for number in range(3):
            await until_card_says(room, "try 2")
            await reply_to(room, thread, f"steer {number}")
            await room.until_settled(*["steered"] * (number + 1), timeout=10)
        await reply_to(room, thread, "!stop")
        await room.until_settled("steered", "steered", "steered", "stopped")

"""Whatever the model's API does: the turn goes on, or ends with a cause and a word on how to go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import (
    Reply,
    forbidden,
    hang,
    invalid_key,
    overloaded,
    rate_limited,
    refusal,
    reply,
    server_error,
)
from tests.stories.room import Room
from tests.stories.telling import (
    ANSWER,
    CARD,
    ask,
    calls_of,
    held,
    newest_results,
    notes,
    reply_to,
    said_by_people,
    story,
    until_card_says,
    until_reached,
)

FINE = reply(text("it is the deploy"))
FAST = call("probe__fast", {"text": "a"})


async def the_failed_turn(room: Room, cause: str, requests: int | None = None) -> None:
    """The turn has failed for this cause, which the card and a note tell together with the way to go on."""
    await room.until_settled("failed")
    [note] = notes(room, "failed")
    assert cause in note
    assert "Reply here to try again" in note
    assert cause[:40] in room.slack.of_type(CARD)[-1].text
    if requests is not None:
        assert len(room.model.requests) == requests


# --- what passes --------------------------------------------------------------------------------------------


async def test_an_overloaded_model_is_tried_again_and_the_card_says_so(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=30) as room:
        room.model.fail_next(2, overloaded())
        room.model.script(FINE)
        await ask(room)
        card = await until_card_says(room, "the model is overloaded: Overloaded, try 3")
        await room.until_settled("completed")
        assert len(room.model.requests) == 3
        assert "overloaded" not in card.text


async def test_the_card_no_longer_speaks_of_an_overload_once_the_model_works_again(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=30) as room:
        gate, second = room.model.gate("middle"), room.model.gate("second")
        room.model.script(
            reply(text("I ")).held(gate, before="content_block_stop").broken(before="content_block_stop"),
            reply(text("It "), second),
        )
        await ask(room)
        await gate.reached(timeout=30)
        await until_card_says(room, "writing")
        gate.release()
        await until_card_says(room, "try 2")
        await second.reached(timeout=30)
        await until_card_says(room, "writing", timeout=3)
        second.release()
        await room.until_settled("completed")


async def test_a_rate_limit_is_waited_out_as_long_as_it_says(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.fail_next(1, rate_limited(1.5))
        room.model.script(FINE)
        await ask(room)
        await room.until_settled("completed")
        first, second = room.model.requests
        assert second.arrived_ns - first.arrived_ns >= 1_500_000_000


BREAKS = {
    "error event": FINE.broken(before=4),
    "cut before a word": FINE.cut(before=0),
    "cut at the first word": FINE.cut(before="content_block_delta"),
    "cut inside an event": FINE.cut(before=4, after_bytes=20),
    "cut before the stop reason": FINE.cut(before="message_delta"),
    "cut inside a call": reply(text("Look."), FAST).cut(before="content_block_stop:1"),
    "cut behind a whole call": reply(text("Look."), FAST).cut(before="message_delta"),
    "no stop reason": FINE.lacking("message_delta", "message_stop"),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS.keys())
async def test_a_broken_stream_was_never_said_and_is_asked_for_again(tmp_path: Path, broken: Reply) -> None:
    async with story(tmp_path) as room:
        room.model.script(broken, FINE)
        await ask(room)
        await room.until_settled("completed")
        assert [request.status for request in room.model.requests] == [200, 200]
        assert room.tool_events() == []
        assert room.model.requests[1].messages == room.model.requests[0].messages
        assert [post["text"] for post in room.posts(ANSWER)] == ["it is the deploy"]


@pytest.mark.parametrize("silent", [FINE.stalled(before=4), hang()], ids=["stalled", "mute"])
async def test_a_silent_stream_is_given_up_after_the_idle_limit(tmp_path: Path, silent: Reply) -> None:
    async with story(tmp_path, idle_timeout_s=0.5) as room:
        room.model.script(silent, FINE)
        await ask(room)
        await until_card_says(room, "no byte from the model for 0.5 s, try 2")
        await room.until_settled("completed")
        assert room.model.requests[0].closed_at is not None


async def test_an_answer_at_the_length_limit_says_that_it_is_cut_off(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is the depl"), stop_reason="max_tokens"))
        await ask(room)
        await room.until_settled("completed")
        [answer] = room.posts(ANSWER)
        assert "reached the model's length limit" in answer["text"]


async def test_a_pause_is_gone_on_with_and_joined(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("First, "), stop_reason="pause_turn"), reply(text("it is the deploy")))
        thread = await ask(room)
        await room.until_settled("completed")
        assert room.model.requests[1].assistant_texts() == ["First, "]
        [answer] = room.posts(ANSWER)
        assert "it is the deploy" in answer["text"]
        await reply_to(room, thread, "!stop")


async def test_a_steer_during_a_pause_leaves_nothing_half_said(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        gate = room.model.gate("second")
        room.model.script(reply(text("First, "), stop_reason="pause_turn"), reply(text("it "), gate), FINE)
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed")
        assert room.model.requests[2].assistant_texts() == []
        assert said_by_people(room.model.requests[2])[-1] == "look at the deploy"


# --- calls that are not as they should be -------------------------------------------------------------------


async def test_a_call_cut_at_the_length_limit_is_never_run(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        cut = call("probe__restart", raw='{"service": "sh')
        whole = call("probe__restart", {"service": "shop"})
        room.model.script(reply(text("Now."), whole, cut, stop_reason="max_tokens"), FINE)
        await ask(room)
        await room.until_settled("completed")
        assert room.tool_events() == []
        [told] = newest_results(room.model.requests[1])
        assert "not executed" in told


async def test_the_only_call_cut_at_the_length_limit_ends_the_turn_without_an_answer(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        cut = call("probe__restart", raw='{"service": "sh')
        room.model.script(reply(cut, stop_reason="max_tokens"))
        await ask(room)
        await room.until_settled("empty")
        assert room.tool_events() == []
        assert len(notes(room, "empty")) == 1


async def test_a_call_with_unreadable_input_is_answered_and_never_run(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(call("probe__restart", raw='{"service": '), FAST), FINE)
        await ask(room)
        await room.until_settled("completed")
        unread, fine = newest_results(room.model.requests[1])
        assert unread.startswith("not executed: ")
        assert fine == "a"
        assert [event["tool"] for event in room.tool_events()] == ["fast"]


async def test_an_unknown_tool_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(call("probe__fasst", {"text": "a"})), FINE)
        thread = await ask(room)
        await room.until_settled("completed")
        [told] = newest_results(room.model.requests[1])
        assert "there is no tool 'probe__fasst'; did you mean probe__fast" in told
        [one] = await calls_of(room, thread)
        assert one["state"] == "error"


async def test_doubled_and_empty_call_ids_are_made_unique_before_they_run(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        given = ["same", "same", "", "an id!"]
        room.model.script(
            reply(*(call("probe__fast", {"text": str(n)}, id=name) for n, name in enumerate(given))),
            reply(call("probe__fast", {"text": "again"}, id="same")),
            FINE,
        )
        await ask(room)
        await room.until_settled("completed")
        assert newest_results(room.model.requests[2]) == ["0", "1", "2", "3", "again"]
        assert len(room.model.requests[2].calls()) == 5
        assert len({event["call_id"] for event in room.tool_events()}) == 5


# --- what ends the turn -------------------------------------------------------------------------------------


async def test_an_overload_past_the_limit_fails_with_the_cause(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=1) as room:
        room.model.fail_next(50, overloaded())
        await ask(room)
        await the_failed_turn(room, "the model is overloaded")


async def test_a_rate_limit_longer_than_our_patience_fails_at_once(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.fail_next(1, rate_limited(600))
        await ask(room)
        await the_failed_turn(room, "the model's rate limit is reached", requests=1)


async def test_a_server_error_that_stays_fails_and_a_reply_tries_again(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=0) as room:
        room.model.fail_next(1, server_error())
        room.model.script(FINE)
        thread = await ask(room)
        await the_failed_turn(room, "the model's API failed (500)", requests=1)
        await reply_to(room, thread, "try again", "Ana")
        await room.until_settled("failed", "completed")
        assert said_by_people(room.model.requests[1]) == ["why is checkout slow?", "try again"]


async def test_a_key_that_is_no_longer_taken_fails_in_the_middle_with_the_mend(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(FAST), invalid_key())
        thread = await ask(room)
        await the_failed_turn(room, "set a valid ANTHROPIC_API_KEY", requests=2)
        assert [one["state"] for one in await calls_of(room, thread)] == ["ok"]


async def test_a_model_that_the_key_may_not_use_fails_with_the_mend(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(forbidden())
        await ask(room)
        await the_failed_turn(room, "may not use the model", requests=1)


async def test_a_refusal_fails_without_another_try_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(refusal(text("I would"), call("probe__restart", {"service": "shop"})), FINE)
        thread = await ask(room)
        await the_failed_turn(room, "the model refused", requests=1)
        assert room.tool_events() == []
        await reply_to(room, thread, "look at the deploy instead")
        await room.until_settled("failed", "completed")
        assert room.model.requests[1].assistant_texts() == []


async def test_a_full_context_fails_and_says_so(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is"), stop_reason="model_context_window_exceeded"))
        await ask(room)
        await the_failed_turn(room, "too long for the model", requests=1)


async def test_a_model_that_only_pauses_is_given_up(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(*(reply(text(f"part {n}"), stop_reason="pause_turn") for n in range(6)))
        await ask(room)
        await the_failed_turn(room, "paused 5 times", requests=6)


async def test_an_empty_end_is_told_and_is_no_answer(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(FAST), reply())
        await ask(room)
        [record] = await room.until_settled("empty")
        assert record["final_event_id"] is None
        [note] = notes(room, "empty")
        assert "Reply here to try again" in note
        assert room.posts(ANSWER) == []


async def test_a_turn_that_takes_too_long_while_generating_fails_and_says_why(tmp_path: Path) -> None:
    async with story(tmp_path, worker="turn_limit_s = 1") as room:
        room.model.script(reply(text("I think"), room.model.gate("for ever")))
        await ask(room)
        await the_failed_turn(room, "the turn took longer than 1 s", requests=1)
        assert room.model.requests[0].closed_at is not None


@pytest.mark.slow
async def test_a_turn_that_takes_too_long_while_acting_fails_once_its_calls_have_ended(
    tmp_path: Path,
) -> None:
    async with story(tmp_path, worker="turn_limit_s = 1", own_probe=True) as room:
        slow = call("probe__slow", {"seconds": 30, "text": "b"})
        room.model.script(reply(slow, held(room, "w", "probe__hold_write")))
        thread = await ask(room)
        await until_reached(room, "w")
        await asyncio.sleep(1.3)
        assert await room.settles() == []
        assert len(room.tool_events("cancelled")) == 1
        (room.folder / "w.release").touch()
        await the_failed_turn(room, "the turn took longer than 1 s", requests=1)
        assert [one["state"] for one in await calls_of(room, thread)] == ["asked_to_stop", "ok"]

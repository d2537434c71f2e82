"""A steer or stop hurries what reads and waits for the rest; each call comes back once, with what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.telling import (
    ask,
    calls_of,
    has_stop_button,
    held,
    newest_results,
    press_stop,
    quiet,
    release,
    reply_to,
    story,
    until_card_says,
    until_reached,
    until_started,
)

SHORT_HOLD = '[tools."probe__hold_write"]\ntimeout_s = 1'
SHORT_STUBBORN = '[tools."probe__stubborn"]\ninterruptible = false\ntimeout_s = 1'


async def test_a_steer_stops_a_tool_that_reads_and_tells_the_model_what_it_had(tmp_path: Path) -> None:
    async with story(tmp_path, own_probe=True) as room:
        room.model.script(
            reply(call("probe__slow", {"seconds": 30, "text": "done"})), reply(text("it is the deploy"))
        )
        thread = await ask(room)
        await until_started(room, "slow")
        await quiet(0.5)
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed", timeout=10)
        [result] = newest_results(room.model.requests[1])
        words, _, so_far = result.partition("\nWhat it had so far:\n")
        # The server stops and, as MCP wants it, does not answer any more: that is no proof that it stopped.
        assert re.fullmatch(r"asked to stop after \d\.\d s, may have gone on", words)
        assert so_far.splitlines()[:2] == ["0.0 s of 30 s", "0.1 s of 30 s"]
        assert len(room.tool_events("cancelled")) == 1
        [one] = await calls_of(room, thread)
        assert one["state"] == "asked_to_stop"


@pytest.mark.slow
async def test_a_tool_that_ignores_the_wish_to_stop_may_have_gone_on(tmp_path: Path) -> None:
    async with story(tmp_path, own_probe=True) as room:
        room.model.script(reply(call("probe__stubborn", {"seconds": 3})), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_started(room, "stubborn")
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed", timeout=10)
        [result] = newest_results(room.model.requests[1])
        assert re.fullmatch(r"asked to stop after \d\.\d s, may have gone on", result)


async def test_a_tool_with_side_effects_runs_to_its_end_though_a_steer_waits(tmp_path: Path) -> None:
    async with story(tmp_path, own_probe=True) as room:
        slow = call("probe__slow", {"seconds": 30, "text": "done"})
        room.model.script(reply(held(room, "w", "probe__hold_write"), slow), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "w")
        await until_started(room, "slow")
        await reply_to(room, thread, "look at the deploy")
        await until_card_says(room, "ben wrote: 1 call, at most")
        assert len(room.tool_events("cancelled")) == 1
        release(room, "w")
        await room.until_settled("steered", "completed")
        written, stopped = newest_results(room.model.requests[1])
        assert written == "w was released"
        assert stopped.startswith("asked to stop after ")


@pytest.mark.slow
async def test_a_tool_that_does_not_answer_may_still_be_running(tmp_path: Path) -> None:
    async with story(tmp_path, more=SHORT_HOLD, own_probe=True) as room:
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "w")
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed", timeout=10)
        assert newest_results(room.model.requests[1]) == ["no answer within 1 s, may still be running"]


@pytest.mark.slow
async def test_a_reading_tool_that_may_not_be_interrupted_runs_to_its_limit(tmp_path: Path) -> None:
    async with story(tmp_path, more=SHORT_STUBBORN, own_probe=True) as room:
        room.model.script(reply(call("probe__stubborn", {"seconds": 3})), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_started(room, "stubborn")
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed", timeout=10)
        assert newest_results(room.model.requests[1]) == ["no answer within 1 s, may still be running"]


async def test_a_queued_message_hurries_nothing(tmp_path: Path) -> None:
    async with story(tmp_path, own_probe=True) as room:
        room.model.script(
            reply(call("probe__slow", {"seconds": 1, "text": "done"})),
            reply(text("it is the deploy")),
            reply(text("the cache is fine")),
        )
        thread = await ask(room)
        await until_started(room, "slow")
        await reply_to(room, thread, "later: check the cache")
        await room.until_settled("completed", "completed")
        assert newest_results(room.model.requests[1]) == ["done"]


async def test_within_a_second_of_a_stop_the_card_says_what_it_waits_for(tmp_path: Path) -> None:
    async with story(
        tmp_path, more='[tools."probe__hold_write"]\ntimeout_s = 25', rate_factor=1, own_probe=True
    ) as room:
        room.model.script(reply(held(room, "v", "probe__hold_write"), held(room, "w", "probe__hold_write")))
        await ask(room)
        await until_reached(room, "v", "w")
        await until_card_says(room, "probe__hold_write")
        await press_stop(room)
        card = await until_card_says(room, "Stopping: 2 calls, at most 25 s", timeout=1)
        assert not has_stop_button(card.blocks)
        release(room, "v")
        await until_card_says(room, "Stopping: 1 call, at most 2")
        release(room, "w")
        [record] = await room.until_settled("stopped")
        assert record["cut_by"] == "U0ANA00001"
        assert not any(has_stop_button(v.blocks) for v in card.versions if "Stop" in v.text.split("\n")[0])


async def test_every_call_of_a_stopped_batch_has_one_result_for_the_next_request(tmp_path: Path) -> None:
    async with story(tmp_path, own_probe=True) as room:
        room.model.script(
            reply(
                call("probe__fast", {"text": "a"}),
                call("probe__slow", {"seconds": 30, "text": "b"}),
                call("probe__fail", {"message": "no such pod"}),
                held(room, "w", "probe__hold_write"),
            ),
            reply(text("it was the deploy")),
        )
        thread = await ask(room)
        await until_started(room, "slow", "fail", "hold_write")
        await reply_to(room, thread, "!stop")
        release(room, "w")
        await room.until_settled("stopped")
        await reply_to(room, thread, "what did you find?")
        await room.until_settled("stopped", "completed")
        results = newest_results(room.model.requests[1])
        assert (results[0], results[2], results[3]) == ("a", "no such pod", "w was released")
        assert results[1].startswith("asked to stop after ")

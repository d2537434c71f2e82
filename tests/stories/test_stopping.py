"""A stop ends the work, whenever it comes, and never touches a message that came after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import overloaded, reply
from tests.stories.telling import (
    CARD,
    ask,
    effects,
    has_stop_button,
    held,
    messages,
    newest_results,
    press_stop,
    quiet,
    receipt,
    receipts,
    release,
    reply_to,
    said_by_people,
    story,
    until_card_says,
    until_decided,
    until_reached,
    until_started,
    until_told,
)

DEPLOY = "look at the 14:05 deploy"


@pytest.mark.parametrize("words", ["!stop", "@bot stop", "@bot Stop!"])
async def test_the_words_stop_the_work(tmp_path: Path, words: str) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(call("probe__slow", {"seconds": 30, "text": "done"})))
        thread = await ask(room)
        await until_started(room, "slow")
        stop = await reply_to(room, thread, words)
        [record] = await room.until_settled("stopped")
        assert record["cut_by"] == "U0BEN00001"
        assert (await effects(room, thread))[1] == "stop"
        assert receipts(room, stop) == ["eyes"]
        assert "Stopped by ben" in room.slack.of_type(CARD)[-1].text
        await quiet()
        assert len(room.model.requests) == 1


async def test_the_button_stops_the_work(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think"), gate))
        await ask(room)
        await gate.reached(timeout=30)
        await until_card_says(room, "Investigating")
        await press_stop(room, "Cleo")
        [record] = await room.until_settled("stopped")
        assert record["cut_by"] == "U0CLEO0001"
        assert room.model.requests[0].closed_at is not None
        assert not has_stop_button(room.slack.of_type(CARD)[-1].blocks)


async def test_a_stop_before_the_first_turn_lets_nothing_start(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        held_back = room.slack.hang("users.info", when=lambda args: args["user"] == "U0ANA00001")
        thread = await ask(room)
        stop = await room.slack.say("Ana", "#inc", "!stop", thread=thread)
        await room.slack.events_settled()
        held_back.release()
        await until_decided(room, thread, stop)
        await quiet(2)  # longer than the tool server takes to be ready
        assert await room.settles() == []
        assert room.model.requests == []
        assert [message["fate"] for message in await messages(room, thread)] == ["context", "read"]
        assert (receipt(room, thread), receipt(room, stop)) == ([], ["eyes"])


async def test_a_stop_that_is_decided_before_what_it_stops_holds(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        held_back = room.slack.hang("users.info", when=lambda args: args["user"] == "U0BEN00001")
        room.model.script(reply(held(room, "a")))
        thread = await ask(room)
        await until_reached(room, "a")
        late = await room.slack.say("Ben", "#inc", DEPLOY, thread=thread)
        await room.slack.wait_for(lambda _: held_back.waiting)
        await reply_to(room, thread, "!stop", "Cleo")
        await room.until_settled("stopped")
        held_back.release()
        await until_decided(room, thread, late)
        await quiet()
        assert await effects(room, thread) == ["start", "context", "stop"]
        assert len(room.model.requests) == 1


async def test_a_stop_during_the_gather_pause_ends_it(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=2) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think"), gate))
        thread = await ask(room)
        await gate.reached(timeout=30)
        steer = await reply_to(room, thread, DEPLOY)
        await room.until_settled("steered")
        await reply_to(room, thread, "!stop")
        await room.until_settled("steered", "stopped", timeout=2)
        assert len(room.model.requests) == 1
        assert [message["fate"] for message in await messages(room, thread)] == ["read", "context", "read"]
        assert receipt(room, steer) == []


async def test_a_message_after_such_a_stop_is_taken_at_once_and_anew(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=3) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think"), gate), reply(text("it is the cache")))
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, DEPLOY)
        await room.until_settled("steered")
        await reply_to(room, thread, "!stop")
        await reply_to(room, thread, "look at the cache")
        await room.until_settled("steered", "stopped", "completed", timeout=2)
        assert (await effects(room, thread))[:3] == ["start", "steer", "stop"]
        assert said_by_people(room.model.requests[1])[-1] == "look at the cache"


async def test_a_stop_goes_before_a_steer_that_waits_for_the_same_calls(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "w", "probe__hold_write")))
        thread = await ask(room)
        await until_reached(room, "w")
        await reply_to(room, thread, DEPLOY, "Ben")
        await until_card_says(room, "ben wrote: 1 call")
        await reply_to(room, thread, "!stop", "Cleo")
        await until_card_says(room, "Stopping: 1 call")
        release(room, "w")
        [record] = await room.until_settled("stopped")
        assert record["cut_by"] == "U0CLEO0001"
        assert [message["fate"] for message in await messages(room, thread)] == ["read", "context", "read"]


async def test_a_stop_while_an_overloaded_model_is_waited_for_counts_at_once(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=60) as room:
        room.model.fail_next(20, overloaded())
        thread = await ask(room)
        await until_card_says(room, "try 3")
        await reply_to(room, thread, "!stop")
        await room.until_settled("stopped", timeout=2)


async def test_a_stop_after_the_end_is_told_so_and_starts_nothing(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=30)
        release(room, "r")
        await room.until_settled("completed")
        await reply_to(room, thread, "!stop", "Ben")
        [said] = await until_told(room, "Ben")
        assert "already ended" in said.text
        live = next(
            n for n, v in enumerate(room.slack.of_type(CARD)[0].versions) if has_stop_button(v.blocks)
        )
        await press_stop(room, "Cleo", version=live)
        [said] = await until_told(room, "Cleo")
        assert "already ended" in said.text
        await press_stop(room, "Cleo", version=live)
        assert len(await until_told(room, "Cleo", 2)) == 2
        assert len(room.model.requests) == 2


async def test_two_stops_are_one_and_the_second_does_no_harm(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "w", "probe__hold_write")))
        thread = await ask(room)
        await until_reached(room, "w")
        await until_card_says(room, "hold_write")
        await press_stop(room, "Ana")
        await reply_to(room, thread, "!stop", "Ben")
        await quiet()
        release(room, "w")
        [record] = await room.until_settled("stopped")
        assert record["cut_by"] == "U0ANA00001"
        assert await effects(room, thread) == ["start", "stop", "stop"]


async def test_a_message_after_a_stop_starts_a_turn_of_its_own(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "w")
        before = await reply_to(room, thread, "look at the cache")
        await reply_to(room, thread, "!stop")
        after = await reply_to(room, thread, DEPLOY)
        release(room, "w")
        _, second = await room.until_settled("stopped", "completed")
        assert second["resumes_turn_id"] is None
        assert said_by_people(room.model.requests[1])[-1] == DEPLOY
        assert [m["fate"] for m in await messages(room, thread)] == ["read", "context", "read", "read"]
        assert "look at the cache" in str(room.model.requests[1].user_texts())
        assert "look at the cache" not in said_by_people(room.model.requests[1])
        assert newest_results(room.model.requests[1]) == ["w was released"]
        assert (receipt(room, before), receipt(room, after)) == ([], ["white_check_mark"])


async def test_the_button_of_an_earlier_turn_does_not_stop_a_later_analysis(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(text("it is the deploy")), reply(held(room, "a")), reply(text("it is the cache"))
        )
        thread = await ask(room)
        await room.until_settled("completed")
        await reply_to(room, thread, "and the cache?")
        await until_reached(room, "a")
        first = room.slack.of_type(CARD)[0]
        live = next(n for n, v in enumerate(first.versions) if has_stop_button(v.blocks))
        await room.slack.click(first.ts, "watchkeeper_stop", "Cleo", version=live)
        [said] = await until_told(room, "Cleo")
        assert "already ended" in said.text
        release(room, "a")
        await room.until_settled("completed", "completed")


async def test_the_button_of_a_turn_that_was_steered_stops_its_analysis(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(reply(held(room, "a")), reply(held(room, "b")))
        thread = await ask(room)
        await until_reached(room, "a")
        first = await until_card_says(room, "probe__hold")
        live = next(n for n, v in enumerate(first.versions) if has_stop_button(v.blocks))
        await reply_to(room, thread, DEPLOY)
        release(room, "a")
        await until_reached(room, "b")
        await room.slack.click(first.ts, "watchkeeper_stop", "Ana", version=live)
        release(room, "b")
        await room.until_settled("steered", "stopped")


async def test_guests_and_strangers_cannot_stop(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "a")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "a")
        await until_card_says(room, "probe__hold")
        await press_stop(room, "Gus")
        await until_told(room, "Gus")
        await reply_to(room, thread, "!stop", "Uma")
        await until_told(room, "Uma")
        release(room, "a")
        await room.until_settled("completed")
        assert await effects(room, thread) == ["start", "deny", "deny"]

"""While it works, people talk to it: a reply steers the analysis at its safe points."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.telling import (
    CARD,
    ask,
    calls_of,
    effects,
    held,
    messages,
    quiet,
    receipt,
    receipts,
    release,
    reply_to,
    said_by_people,
    story,
    until_decided,
    until_reached,
    until_told,
)

DEPLOY = "look at the 14:05 deploy"


async def test_a_steer_waits_for_the_open_calls_and_starts_the_next_turn(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(held(room, "w", "probe__hold_write"), call("probe__fast", {"text": "b"})),
            reply(text("the deploy removed an index")),
        )
        thread = await ask(room)
        await until_reached(room, "w")
        steer = await reply_to(room, thread, DEPLOY)
        await quiet()
        assert len(room.model.requests) == 1
        assert await room.settles() == []
        release(room, "w")
        first, second = await room.until_settled("steered", "completed")
        assert second["resumes_turn_id"] == first["turn_id"]
        assert first["cut_by"] == "U0BEN00001"
        assert said_by_people(room.model.requests[1]) == ["why is checkout slow?", DEPLOY]
        assert room.model.requests[1].ends_with(f"{DEPLOY}\n</message>")
        assert receipts(room, steer) == ["eyes", "white_check_mark"]


async def test_a_steer_while_the_model_generates_breaks_the_stream_off(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        gate = room.model.gate("middle")
        room.model.script(
            reply(text("I think it is the "), gate, text("database")), reply(text("it is the deploy"))
        )
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, DEPLOY)
        await room.until_settled("steered", "completed")
        assert room.model.requests[0].closed_at is not None
        assert len(room.slack.of_type(CARD)) == 1


async def test_a_reply_marked_now_steers_like_any_other(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think"), gate), reply(text("it is the deploy")))
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, f"! {DEPLOY}")
        await room.until_settled("steered", "completed")
        _, steer = await messages(room, thread)
        assert (steer["marker"], steer["effect"], steer["fate"]) == ("now", "steer", "read")
        assert said_by_people(room.model.requests[1])[1] == f"! {DEPLOY}"


async def test_a_reply_marked_later_is_read_after_the_answer_in_a_turn_of_its_own(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(held(room, "a")), reply(text("it is the deploy")), reply(text("the cache is fine"))
        )
        thread = await ask(room)
        await until_reached(room, "a")
        later = await reply_to(room, thread, "later: check the cache")
        await quiet()
        assert receipt(room, later) == ["clock4"]
        assert room.tool_events("cancelled") == []
        release(room, "a")
        _, second = await room.until_settled("completed", "completed")
        assert second["resumes_turn_id"] is None
        assert said_by_people(room.model.requests[1]) == ["why is checkout slow?"]
        assert said_by_people(room.model.requests[2])[-1] == "later: check the cache"
        assert [receipts(room, later)[0], receipts(room, later)[-1]] == ["clock4", "white_check_mark"]


async def test_later_waits_for_the_answer_though_a_steer_comes_in_between(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(held(room, "a")), reply(text("it is the deploy")), reply(text("the cache is fine"))
        )
        thread = await ask(room)
        await until_reached(room, "a")
        await reply_to(room, thread, "later: check the cache")
        await reply_to(room, thread, DEPLOY)
        release(room, "a")
        await room.until_settled("steered", "completed", "completed")
        assert said_by_people(room.model.requests[1]) == ["why is checkout slow?", DEPLOY]
        assert said_by_people(room.model.requests[2])[-1] == "later: check the cache"


async def test_later_before_the_first_turn_has_begun_still_waits_for_the_answer(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is the deploy")), reply(text("the cache is fine")))
        held_back = room.slack.hang("users.info", when=lambda args: args["user"] == "U0ANA00001")
        thread = await ask(room)
        later = await room.slack.say("Ana", "#inc", "later: check the cache", thread=thread)
        await room.slack.events_settled()
        held_back.release()
        await until_decided(room, thread, later)
        await room.until_settled("completed", "completed")
        assert await effects(room, thread) == ["start", "queue"]
        assert said_by_people(room.model.requests[0]) == ["why is checkout slow?"]
        assert said_by_people(room.model.requests[1])[-1] == "later: check the cache"


async def test_a_burst_of_replies_is_gathered_into_one_next_turn(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0.5) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think"), gate), reply(text("all three are fine")))
        thread = await ask(room)
        await gate.reached(timeout=30)
        burst = [f"look at {what}" for what in ("the deploy", "the cache", "the disk")]
        for words in burst:
            await reply_to(room, thread, words)
            await quiet(0.2)
        await room.until_settled("steered", "completed")
        assert len(room.model.requests) == 2
        assert said_by_people(room.model.requests[1])[1:] == burst


async def test_each_of_several_steers_is_read_in_order_and_once(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(
            *(reply(held(room, name)) for name in ("a", "b", "c")), reply(text("it is the deploy"))
        )
        thread = await ask(room)
        for name in ("a", "b", "c"):
            await until_reached(room, name)
            await reply_to(room, thread, f"steer {name}")
            release(room, name)
        records = await room.until_settled("steered", "steered", "steered", "completed")
        assert [record["resumes_turn_id"] for record in records[1:]] == [r["turn_id"] for r in records[:-1]]
        assert said_by_people(room.model.last_request)[1:] == ["steer a", "steer b", "steer c"]


async def test_two_people_steer_and_the_card_names_both(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "a", "probe__hold_write")), reply(text("both are fine")))
        thread = await ask(room)
        await until_reached(room, "a")
        await reply_to(room, thread, "look at the cache", "Ben")
        await reply_to(room, thread, "look at the disk", "Cleo")
        release(room, "a")
        await room.until_settled("steered", "completed")
        assert said_by_people(room.model.requests[1])[1:] == ["look at the cache", "look at the disk"]
        assert [' from="ben"' in said for said in room.model.requests[1].user_texts()[-2:]] == [True, False]
        assert "Steered by ben, cleo" in room.slack.of_type(CARD)[-1].text


async def test_a_steer_before_the_first_turn_has_begun_joins_it(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is the deploy")))
        held_back = room.slack.hang("users.info", when=lambda args: args["user"] == "U0ANA00001")
        thread = await ask(room)
        steer = await room.slack.say("Ana", "#inc", DEPLOY, thread=thread)
        await room.slack.events_settled()
        held_back.release()
        await room.until_settled("completed")
        assert await effects(room, thread) == ["start", "steer"]
        assert said_by_people(room.model.requests[0]) == ["why is checkout slow?", DEPLOY]
        assert receipt(room, steer) == ["white_check_mark"]


async def test_a_reply_after_the_end_starts_a_turn_that_knows_the_first(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is the deploy")), reply(text("it was rolled back")))
        thread = await ask(room)
        await room.until_settled("completed")
        reply_ts = await reply_to(room, thread, "is it rolled back?")
        _, second = await room.until_settled("completed", "completed")
        assert second["resumes_turn_id"] is None
        assert room.model.requests[1].assistant_texts() == ["it is the deploy"]
        assert receipt(room, reply_ts) == ["white_check_mark"]


async def test_a_reply_to_another_person_is_context_for_the_next_request(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "a")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "a")
        aside = await reply_to(room, thread, "@Cleo did you deploy at 14:05?")
        await quiet()
        assert room.tool_events("cancelled") == []
        release(room, "a")
        await room.until_settled("completed")
        assert await effects(room, thread) == ["start", "context"]
        assert receipts(room, aside) == []
        assert len(said_by_people(room.model.requests[1])) == 1
        [shown] = [words for words in room.model.requests[1].user_texts() if words.startswith("<context ")]
        assert "did you deploy at 14:05?" in shown


async def test_talk_between_people_after_the_answer_wakes_nobody(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("it is the deploy")))
        thread = await ask(room)
        await room.until_settled("completed")
        await reply_to(room, thread, "@Cleo can you roll it back?")
        await quiet()
        assert len(room.model.requests) == 1


async def test_a_guest_is_refused_privately_once_per_thread(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "a")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "a")
        first = await reply_to(room, thread, DEPLOY, "Gus")
        await reply_to(room, thread, "hello?", "Gus")
        [refused] = await until_told(room, "Gus")
        assert "guests" in refused.text
        await quiet()
        release(room, "a")
        await room.until_settled("completed")
        assert await effects(room, thread) == ["start", "deny", "deny"]
        assert receipts(room, first) == []
        assert DEPLOY not in str(room.model.last_request.body)
        assert len(await until_told(room, "Gus")) == 1


async def test_a_guest_cannot_start_anything(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        thread = await ask(room, who="Gus")
        await until_told(room, "Gus")
        assert room.model.requests == []
        assert await room.settles() == []
        assert await effects(room, thread) == ["deny"]


async def test_an_author_who_is_known_late_steers_once_known(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "a")), reply(text("it is the deploy")))
        thread = await ask(room)
        await until_reached(room, "a")
        room.slack.fail("users.info", times=1)
        await reply_to(room, thread, DEPLOY)
        release(room, "a")
        await room.until_settled("steered", "completed")
        assert len(await calls_of(room, thread)) == 1


@pytest.mark.slow
async def test_an_author_who_stays_unknown_has_the_least_right_and_is_told(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.slack.fail("users.info", times=None)
        thread = await ask(room)
        [refused] = await until_told(room, "Ana", within=40)
        assert "could not look up who you are" in refused.text
        assert await effects(room, thread) == ["deny"]
        assert room.model.requests == []

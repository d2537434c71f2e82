"""What the reading commands print has exactly the contract's forms."""

from __future__ import annotations

import json
import re

import pytest

from core.signals import Signal
from storage import cards, outbox, reports
from storage import tables as t
from tests.storage.world import READ, WRITE, World, booking

RECORD = [
    "turn_id",
    "conversation_id",
    "platform",
    "workspace",
    "channel",
    "thread",
    "reason",
    "final_event_id",
    "cut_by",
    "started_at",
    "settled_at",
    "card_released_at",
    "answer_posted_at",
    "card_given_up",
    "answer_given_up",
    "resumes_turn_id",
    "steps",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
    "worker",
]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def whole(world: World) -> None:
    """A turn that is steered after a step, and one that answers."""
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE), bookings=[booking(0.25)])
    await world.marks_started(turn, "w")
    await world.returns(turn, "a")
    await world.returns(turn, "w")
    await world.says("look at the deploy", "Ben")
    await world.closes(turn, Signal.STEER)
    await world.cut(turn, Signal.STEER)
    turn = await world.starts()
    await world.settles(turn, bookings=[booking(0.5)])


async def test_a_settle_record_has_exactly_the_contracts_keys(world: World) -> None:
    await whole(world)
    for record in await reports.settle_records(world.database):
        assert list(record) == RECORD
        assert json.loads(json.dumps(record)) == record


async def test_the_records_tell_the_story_newest_last(world: World) -> None:
    await whole(world)
    await world.shows_everything()
    steered, completed = await reports.settle_records(world.database, world.id)
    assert (steered["reason"], steered["cut_by"], steered["steps"], steered["tool_calls"]) == (
        "steered",
        "Ben",
        1,
        2,
    )
    assert (completed["reason"], completed["cut_by"]) == ("completed", None)
    assert steered["resumes_turn_id"] is None
    assert completed["resumes_turn_id"] == steered["turn_id"]
    assert steered["final_event_id"] is None
    assert completed["final_event_id"]
    assert (steered["cost_usd"], steered["input_tokens"], steered["cache_write_tokens"]) == (0.25, 10, 2)
    assert (completed["platform"], completed["workspace"], completed["thread"]) == (
        "slack",
        "T1",
        world.thread.thread,
    )
    for record in (steered, completed):
        assert TIME.fullmatch(record["started_at"])
        assert TIME.fullmatch(record["card_released_at"])
    assert steered["answer_posted_at"] is None
    assert TIME.fullmatch(completed["answer_posted_at"])


async def test_what_the_platform_has_not_taken_yet_has_no_time(world: World) -> None:
    await whole(world)
    for record in await reports.settle_records(world.database):
        assert record["card_released_at"] is None
        assert record["answer_posted_at"] is None


async def test_a_cost_with_an_unknown_price_is_unknown_and_never_zero(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking(0.25), booking(None)])
    [record] = await reports.settle_records(world.database)
    assert record["cost_usd"] is None
    assert record["input_tokens"] == 20
    found = await reports.conversation(world.database, world.id)
    assert found is not None
    assert found["cost_usd"] is None


async def test_records_of_another_conversation_are_left_out(world: World) -> None:
    await whole(world)
    assert await reports.settle_records(world.database, "slack:T1:C1:other") == []


async def test_a_conversation_is_shown_with_its_messages_turns_steps_and_calls(world: World) -> None:
    await whole(world)
    found = await reports.conversation(world.database, world.id)
    assert found is not None
    assert list(found) == ["conversation_id", "messages", "turns", "cost_usd"]
    assert found["cost_usd"] == 0.75
    first, second = found["messages"]
    assert first == {
        "id": "slack:C1:1",
        "source": "mention",
        "role": "initiator",
        "marker": "none",
        "effect": "start",
        "rule": "people_idle",
        "fate": "read",
        "turn_id": found["turns"][0]["turn_id"],
        "text": "why is checkout slow?",
    }
    assert (second["effect"], second["turn_id"]) == ("steer", found["turns"][1]["turn_id"])
    assert [turn["reason"] for turn in found["turns"]] == ["steered", "completed"]
    [step] = found["turns"][0]["steps"]
    assert step == {
        "calls": [
            {"id": "a", "tool": "logs", "class": "read_only", "state": "ok", "attempts": 1},
            {"id": "w", "tool": "logs", "class": "side_effect", "state": "ok", "attempts": 1},
        ]
    }
    assert json.loads(json.dumps(found)) == found


async def test_a_running_turn_has_no_reason_and_its_calls_say_how_far_they_are(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE))
    found = await reports.conversation(world.database, world.id)
    assert found is not None
    assert found["turns"][0]["reason"] is None
    assert [call["state"] for call in found["turns"][0]["steps"][0]["calls"]] == ["started", "issued"]


async def test_an_unknown_conversation_is_none(world: World) -> None:
    assert await reports.conversation(world.database, "slack:T1:C1:none") is None


@pytest.mark.parametrize(
    "seconds, text",
    [(None, None), (0.0, "1970-01-01T00:00:00.000Z"), (1_700_000_000.25, "2023-11-14T22:13:20.250Z")],
)
def test_times_are_written_as_people_and_programs_read_them(seconds: float | None, text: str | None) -> None:
    assert reports.rfc3339(seconds) == text


async def test_what_the_platform_never_took_is_said_with_its_reason(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    [post] = await world.rows(t.outbox)
    [card] = await world.rows(t.cards)
    [record] = await reports.settle_records(world.database)
    assert (record["card_given_up"], record["answer_given_up"]) == (None, None)
    await world.database.write(cards.give_up, card.id, "is_inactive: chat.update: is_inactive")
    await world.database.write(outbox.give_up, post.id, "chat.postMessage: is_archived")
    [record] = await reports.settle_records(world.database)
    assert record["card_given_up"] == "is_inactive: chat.update: is_inactive"
    assert record["answer_given_up"] == "chat.postMessage: is_archived"
    assert (record["card_released_at"], record["answer_posted_at"]) == (None, None)

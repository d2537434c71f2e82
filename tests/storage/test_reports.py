"""What the reading commands print has exactly the contract's forms."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Thread
from core.settle import cut
from core.signals import Held, Signal
from core.tools import CallResult, Chart, Outcome
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
POST = ["kind", "turn_id", "text", "queued_at", "posted_at", "given_up"]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def conversation(world: World) -> reports.Record:
    """What happened in the world's conversation."""
    found = await reports.conversation(world.database, world.id)
    assert found is not None
    return found


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
    assert list(found) == ["conversation_id", "messages", "turns", "posts", "cost_usd"]
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
            {"id": "a", "tool": "logs", "class": "read_only", "state": "ok", "attempts": 1, "age_s": None},
            {"id": "w", "tool": "logs", "class": "side_effect", "state": "ok", "attempts": 1, "age_s": None},
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


async def test_a_running_turn_says_since_when_and_on_which_worker(world: World) -> None:
    turn = await world.begins()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=1_700_000_000.0)
    [shown] = (await conversation(world))["turns"]
    assert (shown["started_at"], shown["worker"]) == ("2023-11-14T22:13:20.000Z", "w1")


async def test_a_call_without_a_result_has_an_age_since_it_was_sent_or_else_since_its_step(
    world: World,
) -> None:
    turn = await world.begins()
    await world.commits(turn, ("sent", READ), ("back", READ), ("not sent", WRITE))
    await world.returns(turn, "back")
    now = await world.now()
    await world.change(t.calls, {"id": "sent"}, started_at=now - 40)
    await world.change(t.transcript, {"role": "assistant"}, at=now - 90)
    [step] = (await conversation(world))["turns"][0]["steps"]
    ages = {call["id"]: call["age_s"] for call in step["calls"]}
    assert ages == {"sent": pytest.approx(40, abs=5), "back": None, "not sent": pytest.approx(90, abs=5)}


async def test_what_was_said_is_shown_in_its_order_with_what_became_of_it(world: World) -> None:
    turn = await world.begins()
    for number, words in enumerate(("first\nline", "second", "third")):
        await world.database.write(
            outbox.queue, world.id, kind="note", once=f"n{number}", text=words, turn_id=turn.fence.turn_id
        )
    taken, refused, _ = await world.rows(t.outbox)
    await world.database.write(outbox.part_done, taken.id, 1, 1)
    await world.database.write(outbox.give_up, refused.id, "is_archived")
    posts = (await conversation(world))["posts"]
    assert [list(post) for post in posts] == [POST] * 3
    assert [(post["text"], post["posted_at"] is not None, post["given_up"]) for post in posts] == [
        ("first\nline", True, None),
        ("second", False, "is_archived"),
        ("third", False, None),
    ]
    assert {(post["kind"], post["turn_id"]) for post in posts} == {("note", turn.fence.turn_id)}
    assert all(TIME.fullmatch(post["queued_at"]) for post in posts)
    assert TIME.fullmatch(posts[0]["posted_at"])


async def test_what_was_said_elsewhere_is_left_out(world: World) -> None:
    await world.begins()
    other = World(world.database, Thread("slack", "T1", "C1", "2.2"))
    await other.says(key="slack:C1:other")
    await world.database.write(outbox.queue, other.id, kind="note", once="n", text="hm")
    assert (await conversation(world))["posts"] == []


async def test_a_chart_is_shown_by_its_title_without_its_picture(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a", CallResult(Outcome.OK, "fine", charts=(Chart("p99", b"\x89PNG"),)))
    found = await conversation(world)
    [post] = found["posts"]
    assert (post["kind"], post["text"], list(post)) == ("chart", "p99", POST)
    assert json.loads(json.dumps(found)) == found


async def test_the_newest_records_are_those_that_ended_last(world: World) -> None:
    await whole(world)
    everything = await reports.settle_records(world.database)
    for limit, left in ((1, everything[-1:]), (2, everything), (9, everything)):
        assert await reports.settle_records(world.database, limit=limit) == left
        assert await reports.settle_records(world.database, world.id, limit) == left
    assert await reports.settle_records(world.database, "slack:T1:C1:other", 1) == []


async def test_where_nothing_runs_or_waits_nothing_is_underway(world: World) -> None:
    assert await reports.underway(world.database) == []
    await whole(world)
    await world.queues()
    await world.settles(await world.starts())
    assert await reports.underway(world.database) == []


async def test_a_message_waits_for_a_worker_until_a_turn_runs_on_it(world: World) -> None:
    await world.says("why is checkout slow?")
    await world.says("since the deploy", "Ben")
    await world.change(t.inbox, {"text": "why is checkout slow?"}, received_at=1_700_000_000.0)
    waiting = {
        "conversation_id": world.id,
        "state": "waits for a worker",
        "since": "2023-11-14T22:13:20.000Z",
        "worker": None,
        "goal": "why is checkout slow?",
    }
    assert await reports.underway(world.database) == [waiting]
    turn = await world.starts("w7")
    await world.queues()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=1_700_000_100.0)
    running = {"state": "running", "since": "2023-11-14T22:15:00.000Z", "worker": "w7"}
    assert await reports.underway(world.database) == [waiting | running | {"goal": turn.goal}]


async def test_unfinished_work_waits_to_be_resumed_also_when_something_else_was_asked_meanwhile(
    world: World,
) -> None:
    turn = await world.begins()
    await world.steps_once(turn)
    await world.settles(turn, cut(Held(Signal.DRAIN, "shutdown")))
    await world.change(t.conversations, {"id": world.id}, resume_since=1_700_000_000.0)
    waiting = {
        "conversation_id": world.id,
        "state": "waits to be resumed",
        "since": "2023-11-14T22:13:20.000Z",
        "worker": None,
        "goal": turn.goal,
    }
    assert await reports.underway(world.database) == [waiting]
    await world.says("and the disk?", "Ben")
    assert await reports.underway(world.database) == [waiting]


async def test_what_runs_or_waits_in_several_conversations_stands_in_the_order_of_its_time(
    world: World,
) -> None:
    threads = [World(world.database, Thread("slack", "T1", "C1", f"{n}.{n}")) for n in (1, 2, 3)]
    for number, thread in enumerate(threads):
        await thread.says(key=f"slack:C1:thread{number}")
        await world.change(
            t.inbox, {"conversation_id": thread.id}, received_at=1_700_000_000.0 - 100 * number
        )
    oldest = await threads[2].starts()
    assert oldest.fence.conversation_id == threads[2].id
    found = await reports.underway(world.database)
    assert [(each["conversation_id"], each["state"]) for each in found] == [
        (threads[1].id, "waits for a worker"),
        (threads[0].id, "waits for a worker"),
        (threads[2].id, "running"),
    ]


async def test_no_table_is_walked_for_what_runs_or_waits(world: World) -> None:
    """An operator looks often, and has years of records."""

    async def plan(tx: AsyncConnection) -> list[str]:
        if not world.database.is_sqlite:
            await tx.execute(text("set local enable_seqscan = off"))  # small tables are walked by right
        explain = "explain query plan " if world.database.is_sqlite else "explain "
        statement = str(reports.UNDERWAY.compile(dialect=tx.dialect, compile_kwargs={"literal_binds": True}))
        return [str(row) for row in (await tx.execute(text(explain + statement))).all()]

    found = await world.database.read(plan)
    partial = {"ix_conversations_active", "ix_conversations_resumable", "ix_inbox_waiting"}
    assert partial <= set(re.findall(r"\bix_\w+", "\n".join(found)))
    walked = [
        line for line in found if "Seq Scan" in line or re.search(r"\bSCAN (?!.*ix_inbox_waiting)", line)
    ]
    assert walked == []


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

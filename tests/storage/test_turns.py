"""The start of a turn: messages in order, the card new or handed on, an open batch gone on with."""

from __future__ import annotations

import pytest

from core import settle
from core.arrivals import Addressed, Deletion, Source
from core.resume import CallState, Resumption
from core.signals import Held, Signal
from storage import tables as t
from storage import turns
from storage.turns import StartedTurn
from tests.storage.world import ANSWER, READ, SET, THREAD, WRITE, World, booking, text_of


async def lost(world: World) -> None:
    """The worker is lost and somebody settles its turn."""
    await world.loses_its_worker()
    await world.reaps()


# --- what the model is shown ----------------------------------------------------------------------------


async def test_what_waits_is_read_in_one_message_in_order(world: World) -> None:
    await world.says("why is checkout slow?")
    await world.says("and search?", "Ben")
    turn = await world.starts()
    assert len(turn.messages) == 1
    words = text_of(turn.messages)
    assert words.index("why is checkout slow?") < words.index("and search?")
    assert await world.fates() == {"why is checkout slow?": "read", "and search?": "read"}
    assert {row.turn_id for row in await world.rows(t.inbox)} == {turn.fence.turn_id}


async def test_context_stands_in_its_place_in_time_and_is_shown_once(world: World) -> None:
    await world.says("why?")
    await world.says("it began at 14:05, Cleo", "Ben", source=Source.THREAD_REPLY, addressed=Addressed.PERSON)
    turn = await world.starts()
    assert "it began at 14:05" in text_of(turn.messages)
    await world.settles(turn, bookings=[booking()])
    await world.says("and now?")
    assert text_of((await world.starts()).messages).count("it began at 14:05") == 1


async def test_what_was_stopped_before_it_was_read_is_shown_and_asks_for_nothing(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the cache", "Ben")
    await world.stops()
    await world.settles(turn, settle.cut(Held(Signal.STOP, "Ana")))
    await world.says("look at the deploy", "Cleo")
    blocks = [str(block) for block in (await world.starts()).messages[-1].blocks]
    assert [("<context" in one, "look at the cache" in one) for one in blocks] == [
        (True, True),
        (False, False),
    ]


async def test_our_notices_come_last_and_are_no_persons(world: World) -> None:
    await world.says("why?")
    turn = await world.starts(notices=["The tool server is missing."])
    last = turn.messages[-1].blocks[-1]
    assert "The tool server is missing." in text_of([turn.messages[-1]])
    assert "Ana" not in str(last)


async def test_what_was_withdrawn_before_the_start_leaves_nothing_to_do(world: World) -> None:
    await world.says()
    claimed = await world.claimed()
    await world.stores(Deletion(THREAD, "slack:C1:1"))
    assert await world.database.write(turns.start, claimed.fence, "w1", 0.0) is None
    conversation = await world.conversation()
    assert (conversation.lease_owner, conversation.active_turn) == (None, None)
    assert await world.rows(t.turns) == []
    await world.says("again")
    assert await world.claims() is not None


async def test_a_queued_message_shows_that_it_was_taken(world: World) -> None:
    turn = await world.begins()
    seq = await world.queues()
    assert (await world.one(t.inbox, seq=seq)).receipt == "clock4"
    await world.settles(turn, bookings=[booking()])
    await world.starts()
    assert (await world.one(t.inbox, seq=seq)).receipt == "eyes"


async def test_what_is_queued_behind_work_that_has_not_begun_waits_for_its_end(world: World) -> None:
    await world.says("why is checkout slow?")
    seq = await world.queues("later: and the disk?")
    await world.says("look at the deploy", "Cleo")
    turn = await world.starts()
    assert "disk" not in text_of(turn.messages)
    assert "look at the deploy" in text_of(turn.messages)
    assert (await world.one(t.inbox, seq=seq)).fate == "waiting"
    await world.settles(turn, bookings=[booking()])
    await world.says("look at the cache", "Cleo")
    last = text_of([(await world.starts()).messages[-1]])
    assert last.index("disk") < last.index("cache")


async def test_what_is_queued_waits_until_the_work_has_ended_and_not_only_its_turn(world: World) -> None:
    turn = await world.begins()
    seq = await world.queues("later: and the disk?")
    await world.says("look at the deploy", "Cleo")
    await world.cut(turn, Signal.STEER)
    second = await world.starts()
    assert "look at the deploy" in text_of(second.messages)
    assert "and the disk?" not in text_of(second.messages)
    assert await world.fate(seq) == "waiting"
    await world.settles(second, bookings=[booking()])
    assert "and the disk?" in text_of((await world.starts()).messages)


async def test_the_goal_is_that_of_the_analysis(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the deploy", "Ben")
    await world.cut(turn, Signal.STEER)
    second = await world.starts()
    assert second.goal == turn.goal == "why is checkout slow?"
    await world.settles(second, bookings=[booking()])
    await world.says("and search?")
    assert (await world.starts()).goal == "and search?"


# --- the turn's row -------------------------------------------------------------------------------------


async def test_turns_are_numbered_and_name_what_they_resume_and_their_analysis(world: World) -> None:
    first = await world.begins()
    await lost(world)
    second = await world.starts("w2")
    await world.settles(second, bookings=[booking()])
    await world.says("and search?")
    third = await world.starts()
    rows = sorted(await world.rows(t.turns), key=lambda row: row.number)
    assert [row.number for row in rows] == [1, 2, 3]
    assert [row.resumes_turn for row in rows] == [None, first.fence.turn_id, None]
    ids = [first.fence.turn_id, first.fence.turn_id, third.fence.turn_id]
    assert [row.analysis for row in rows] == ids
    assert [row.worker for row in rows] == ["w1", "w2", "w1"]


async def test_a_turn_has_seen_what_was_decided_before_it_began(world: World) -> None:
    await world.says()
    await world.says("and search?", "Ben")
    turn = await world.starts()
    assert turn.seen == (await world.conversation()).signal_seq
    await world.commits(turn, ("a", READ))


async def test_a_turn_knows_what_it_has_read_and_what_it_has_not(world: World) -> None:
    first = await world.begins()
    await world.commits(first, ("a", READ))
    await lost(world)
    await world.queues()
    second = await world.starts()
    read = (await world.rows(t.inbox))[0].seq
    assert (await world.one(t.turns, id=second.fence.turn_id)).read_up_to == read


async def test_the_number_of_discarded_generations_is_handed_on(world: World) -> None:
    turn = await world.begins()
    assert turn.discarded_in_a_row == 0
    for expected in (1, 2):
        await world.says("no, look there", "Ben")
        await world.cut(turn, Signal.STEER, discarded=True)
        turn = await world.starts()
        assert turn.discarded_in_a_row == expected


# --- the card -------------------------------------------------------------------------------------------


async def card_of(world: World, turn: StartedTurn) -> str:
    return str((await world.one(t.turns, id=turn.fence.turn_id)).card_id)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("how", ["drained", "stale", "steered"])
async def test_the_card_is_handed_on_unless_a_steered_turn_had_committed_something(
    world: World, how: str, committed: bool
) -> None:
    first = await world.begins()
    if committed:
        await world.steps_once(first)
    if how == "stale":
        await lost(world)
    else:
        await world.cut(first, Signal.DRAIN if how == "drained" else Signal.STEER)
    await world.falls_quiet()
    second = await world.starts()
    handed_on = await card_of(world, first) == await card_of(world, second)
    assert handed_on is not (how == "steered" and committed)
    cards = await world.rows(t.cards)
    assert len(cards) == (1 if handed_on else 2)


async def test_a_new_analysis_has_its_own_card(world: World) -> None:
    first = await world.begins()
    await world.settles(first, bookings=[booking()])
    await world.says("and search?")
    assert await card_of(world, first) != await card_of(world, await world.starts())


async def test_a_card_that_was_given_up_is_tried_again_for_the_turn_that_takes_it_over(world: World) -> None:
    first = await world.begins()
    await lost(world)
    await world.change(t.cards, {"turn_id": first.fence.turn_id}, given_up="message_not_found")
    await world.starts()
    assert (await world.one(t.cards)).given_up is None


# --- an open batch --------------------------------------------------------------------------------------


async def left_open(world: World) -> StartedTurn:
    """A batch of every kind of call, left by a worker that is gone."""
    turn = await world.begins()
    await world.commits(
        turn, ("read", READ), ("came", READ), ("set", SET), ("sent", WRITE), ("unsent", WRITE),
        bookings=[booking()],
    )  # fmt: skip
    await world.returns(turn, "came")
    await world.marks_started(turn, "sent")
    await lost(world)
    return turn


async def test_the_successor_gets_the_open_batch_and_what_becomes_of_each_call(world: World) -> None:
    first = await left_open(world)
    turn = await world.starts()
    assert {call.id: call.resumption for call in turn.open_calls} == {
        "read": Resumption.RUN_AGAIN,
        "came": Resumption.REUSE,
        "set": Resumption.RUN_AGAIN,
        "sent": Resumption.CLOSE_UNKNOWN,
        "unsent": Resumption.CLOSE_NOT_EXECUTED,
    }
    assert turn.open_calls[0].input == {"query": "read"}
    assert turn.used_call_ids == {"read", "came", "set", "sent", "unsent"}
    assert {row.turn_id for row in await world.rows(t.calls)} == {first.fence.turn_id}  # who issued them


async def test_nothing_is_put_between_an_open_batch_and_its_results(world: World) -> None:
    await left_open(world)
    seq = await world.queues()
    turn = await world.starts(notices=["A tool is missing."])
    assert turn.messages[-1].calls
    assert await world.fate(seq) == "waiting"


async def test_a_steer_that_waits_closes_the_batch_without_running_anything(world: World) -> None:
    await left_open(world)
    await world.says("look at the deploy", "Ben")
    turn = await world.starts()
    assert turn.open_calls == ()
    rows = {row.id: row for row in await world.rows(t.calls)}
    assert {row.state for row in rows.values()} == {CallState.DONE}
    assert (rows["came"].outcome, rows["sent"].outcome, rows["unsent"].outcome) == (
        "ok",
        "unknown",
        "not_executed",
    )
    assert rows["sent"].attempts == 1
    assert "look at the deploy" in text_of(turn.messages)
    answered, steer = turn.messages[-2:]
    assert len(answered.blocks) == 5
    assert "look at the deploy" in text_of([steer])


async def test_a_steer_that_was_withdrawn_does_not_leave_the_model_with_its_own_last_word(
    world: World,
) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.settles(turn, settle.cut(Held(Signal.STEER, "Ben"), overtaken=ANSWER), bookings=[booking()])
    await world.stores(Deletion(THREAD, "slack:C1:2"))
    second = await world.starts()
    assert second.messages[-1].role == "user"
    assert "withdrawn" in text_of(second.messages[-1:])


async def test_the_records_say_which_turns_they_know(world: World) -> None:
    turn = await world.begins()
    found = await world.database.read(turns.known, [turn.fence.turn_id or "", "turn_of_another_database"])
    assert found == {turn.fence.turn_id}
    assert await world.database.read(turns.known, []) == frozenset()

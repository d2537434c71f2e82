"""A turn ends once, with one record, in one transaction, and whatever was to follow from it follows."""

from __future__ import annotations

import pytest

from core import settle
from core.history import Text, assistant
from core.reasons import Reason
from core.settle import Ending
from core.signals import STAMP, Held, Signal
from storage import settlements
from storage import tables as t
from storage.errors import AlreadySettled, Signalled
from tests import invariants
from tests.storage.world import ANSWER, READ, WRITE, World, booking

STEER = Held(Signal.STEER, "Ben")


async def record(world: World) -> tuple[str, str | None, bool]:
    """Reason, who caused it, and whether there is a final message."""
    row = await world.one(t.settlements)
    return row.reason, row.cut_by, row.final_event_id is not None


# --- each ending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ending, reason, by, final",
    [
        (settle.completed(ANSWER), "completed", None, True),
        (settle.empty(), "empty", None, False),
        (settle.failed("no model"), "failed", None, False),
        *((settle.cut(Held(signal, "Ben")), STAMP[signal].value, "Ben", False) for signal in Signal),
    ],
    ids=lambda given: given.reason if isinstance(given, Ending) else "",
)
async def test_the_record_says_how_it_ended(
    world: World, ending: Ending, reason: str, by: str | None, final: bool
) -> None:
    turn = await world.begins()
    standing = await world.settles(turn, ending, bookings=[booking()])
    assert standing == ending
    assert await record(world) == (reason, by, final)
    conversation = await world.conversation()
    assert (conversation.active_turn, conversation.lease_owner) == (None, None)
    goes_on = ending.reason in {Reason.STEERED, Reason.DRAINED}
    assert conversation.resume_turn == (turn.fence.turn_id if goes_on else None)
    assert (await world.one(t.cards)).urgent
    assert await invariants.broken(world.database) == []


async def test_an_answer_is_in_the_transcript_and_in_the_outbox(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    assert (await world.transcript())[-1] == ANSWER
    [post] = await world.rows(t.outbox)
    row = await world.one(t.settlements)
    assert (post.kind, post.turn_id, post.final_event_id) == (
        "answer",
        turn.fence.turn_id,
        row.final_event_id,
    )
    assert "The deploy removed an index." in post.text


async def test_an_answer_that_ran_into_its_limit_says_so_to_people_and_not_to_the_model(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, settle.completed(ANSWER, cut_off=True), bookings=[booking()])
    assert "length limit" in (await world.posts("answer"))[0]
    assert "length limit" not in (await world.transcript())[-1].text


async def test_the_evidence_names_what_a_tool_was_asked_though_it_reported_no_query(world: World) -> None:
    turn = await world.begins()
    await world.steps_once(turn, "checkout")
    await world.settles(turn, settle.completed(assistant(Text("It is slow [c1]."))), bookings=[booking()])
    [answer] = await world.posts("answer")
    assert "- [c1] logs: `query=checkout`" in answer


async def test_an_answer_ticks_off_the_question(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn)
    assert (await world.one(t.inbox)).receipt == "white_check_mark"


async def test_a_failure_is_told_with_its_cause_and_leaves_the_question_as_taken(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, settle.failed("the model could not be reached"))
    assert (await world.one(t.settlements)).cause == "the model could not be reached"
    assert "the model could not be reached" in (await world.posts("failed"))[0]
    assert (await world.one(t.inbox)).receipt == "eyes"


async def test_a_cut_says_nothing_in_the_thread(world: World) -> None:
    turn = await world.begins()
    await world.cut(turn, Signal.STEER)
    assert await world.posts() == []


async def test_a_cut_during_generation_is_stamped_with_its_settle(world: World) -> None:
    turn = await world.begins()
    await world.cut(turn, Signal.STEER, discarded=True)
    row = await world.one(t.turns)
    assert (row.stamp, row.stamp_by) == ("steered", "Ben")


async def test_what_every_request_cost_is_booked_whatever_the_ending(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, settle.cut(STEER, discarded=True), bookings=[booking(), booking()])
    assert len(await world.rows(t.requests)) == 2


async def test_a_failed_turn_leaves_no_batch_open(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE), bookings=[booking()])
    await world.settles(turn, settle.failed("it took too long"))
    assert {row.outcome for row in await world.rows(t.calls)} == {"unknown", "not_executed"}
    assert await invariants.broken(world.database) == []


# --- overtaken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [settle.completed(ANSWER), settle.empty()], ids=lambda e: e.reason)
@pytest.mark.parametrize("signal", [Signal.STEER, Signal.STOP])
async def test_an_end_of_its_own_accord_is_refused_after_a_steer_or_stop(
    world: World, ending: Ending, signal: Signal
) -> None:
    turn = await world.begins()
    await (world.says("look", "Ben") if signal is Signal.STEER else world.stops("Ben"))
    with pytest.raises(Signalled) as refused:
        await world.settles(turn, ending, bookings=[booking()])
    assert refused.value.held == Held(signal, "Ben")
    assert await world.rows(t.settlements) == await world.rows(t.requests) == []
    assert (await world.conversation()).active_turn == turn.fence.turn_id


async def test_a_steer_after_the_end_starts_the_next_turn(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    await world.says("look", "Ben")
    assert (await world.starts()).messages[-1].text.count("look") == 1


async def test_an_overtaken_answer_is_kept_and_told_and_is_no_answer(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.settles(turn, settle.cut(STEER, overtaken=ANSWER), bookings=[booking()])
    assert (await world.transcript())[-1] == ANSWER
    assert await world.posts("answer") == []
    assert "The deploy removed an index." in (await world.posts("partial"))[0]
    assert await record(world) == ("steered", "Ben", False)


async def test_a_stop_goes_before_any_cut_that_it_meets(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.stops("Ana")
    standing = await world.cut(turn, Signal.STEER)
    assert standing.reason is Reason.STOPPED
    assert await record(world) == ("stopped", "Ana", False)


async def test_after_a_stop_what_was_unread_is_context_and_what_came_later_waits(world: World) -> None:
    turn = await world.begins()
    before = await world.says("look", "Ben")
    queued = await world.queues()
    await world.stops()
    later = await world.says("start over with search", "Ben")
    await world.cut(turn, Signal.STOP, "Ana")
    assert [await world.fate(seq) for seq in (before, queued, later)] == ["context", "context", "waiting"]
    assert (await world.one(t.inbox, seq=before)).receipt is None
    assert "start over" in (await world.starts()).goal


# --- what follows ---------------------------------------------------------------------------------------


async def test_after_a_steer_the_next_turn_waits_until_the_thread_is_quiet(world: World) -> None:
    await world.says()
    turn = await world.starts(gather_s=30.0)
    await world.says("look", "Ben")
    await world.cut(turn, Signal.STEER)
    heard = (await world.rows(t.inbox))[-1].received_at
    assert (await world.conversation()).not_before == pytest.approx(heard + 30.0)
    assert await world.claims() is None
    await world.falls_quiet()
    assert await world.claims() is not None


async def test_after_a_drain_anybody_may_go_on_at_once(world: World) -> None:
    await world.says()
    turn = await world.starts(gather_s=30.0)
    await world.cut(turn, Signal.DRAIN, "shutdown")
    assert await world.claims("w2") is not None


@pytest.mark.parametrize(
    "ending, left",
    [
        (settle.cut(STEER, discarded=True), 2),
        (settle.cut(STEER), 1),
        (settle.cut(STEER, overtaken=ANSWER), 0),
        (settle.cut(Held(Signal.DRAIN, "shutdown")), 1),
        (settle.failed("x"), 0),
        (settle.cut(Held(Signal.STOP, "Ana")), 0),
    ],
    ids=["discarded", "between steps", "overtaken", "drained", "failed", "stopped"],
)
async def test_discarded_generations_are_counted_until_something_is_committed(
    world: World, ending: Ending, left: int
) -> None:
    turn = await world.begins()
    await world.change(t.conversations, {"id": world.id}, discarded_in_a_row=1)
    await world.settles(turn, ending, bookings=[booking()])
    assert (await world.conversation()).discarded_in_a_row == left


async def test_a_second_record_for_a_turn_is_impossible_and_undone_whole(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    await world.change(t.conversations, {"id": world.id}, active_turn=turn.fence.turn_id)
    with pytest.raises(AlreadySettled):
        await world.settles(turn, settle.failed("x"))
    assert await world.reasons() == ["completed"]
    assert len(await world.posts()) == 1


# --- dead turns -----------------------------------------------------------------------------------------


async def test_a_turn_whose_lease_holds_is_not_dead(world: World) -> None:
    await world.begins()
    assert await world.database.read(settlements.dead_turns) == []
    assert await world.reaps() is None


async def test_a_turn_whose_lease_has_run_out_is_settled_once(world: World) -> None:
    await world.begins()
    await world.loses_its_worker()
    assert await world.database.read(settlements.dead_turns) == [world.id]
    ending = await world.reaps()
    assert ending is not None
    assert ending.reason is Reason.STALE
    assert await world.reaps("w3") is None
    assert await world.reasons() == ["stale"]
    assert (await world.one(t.settlements)).worker == "w2"


async def test_whoever_settles_a_dead_turn_raises_the_token(world: World) -> None:
    turn = await world.begins()
    await world.loses_its_worker()
    await world.reaps()
    assert (await world.conversation()).token == turn.fence.token + 1


async def test_a_dead_turn_with_a_tombstone_was_stopped(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), bookings=[booking()])
    before = await world.says("look", "Ben")
    await world.stops("Ana")
    await world.loses_its_worker()
    await world.reaps()
    assert await record(world) == ("stopped", "Ana", False)
    assert await world.fate(before) == "context"
    assert await invariants.broken(world.database) == []
    assert await world.claims() is None


async def test_a_dead_turn_with_a_stamp_ended_for_that_reason(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a")
    await world.closes(turn, Signal.STEER, "Ben")
    await world.loses_its_worker()
    await world.reaps()
    assert await record(world) == ("steered", "Ben", False)


async def test_the_tombstone_goes_before_the_stamp(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a")
    await world.closes(turn, Signal.STEER, "Ben")
    await world.stops("Ana")
    await world.loses_its_worker()
    await world.reaps()
    assert await record(world) == ("stopped", "Ana", False)


async def test_the_third_turn_lost_in_a_row_fails_and_the_thread_is_told(world: World) -> None:
    await world.says()
    for _ in range(3):
        await world.starts()
        await world.loses_its_worker()
        await world.reaps()
    assert await world.reasons() == ["stale", "stale", "failed"]
    assert await world.claims() is None
    assert len(await world.posts("failed")) == 1


async def test_progress_between_lost_turns_sets_the_count_to_zero(world: World) -> None:
    await world.says()
    for number in range(4):
        turn = await world.starts()
        await world.steps_once(turn, f"c{number}")
        await world.loses_its_worker()
        await world.reaps()
    assert await world.reasons() == ["stale"] * 4


async def test_a_turn_that_lay_too_long_is_not_resumed_and_the_thread_is_told(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), bookings=[booking()])
    await world.loses_its_worker()
    await world.change(t.turns, {"id": turn.fence.turn_id}, active_at=await world.now() - 7200)
    await world.reaps()
    assert await world.reasons() == ["failed"]
    assert "2 h" in (await world.posts("failed"))[0]
    assert await world.claims() is None
    assert await invariants.broken(world.database) == []


async def test_a_dead_turn_keeps_its_batch_for_its_successor(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), bookings=[booking()])
    await world.loses_its_worker()
    await world.reaps()
    assert not (await world.one(t.calls)).closed
    assert await invariants.broken(world.database) == []


async def test_an_answer_says_which_of_its_sources_there_are(world: World) -> None:
    turn = await world.begins()
    await world.steps_once(turn)
    await world.settles(
        turn, settle.completed(assistant(Text("It was the deploy. [c1]"))), bookings=[booking()]
    )
    [text] = await world.posts("answer")
    assert "c1" in text

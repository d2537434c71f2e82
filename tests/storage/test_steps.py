"""The transactions of a step: commit, begin, result, close."""

from __future__ import annotations

import pytest

from core.arrivals import Addressed, Deletion, Source
from core.errors import RuleBroken
from core.history import Result
from core.signals import Signal
from core.tools import CallResult, Chart, Outcome, ToolClass, not_executed, outcome_unknown
from storage import steps
from storage import tables as t
from storage.errors import Signalled
from tests.storage.world import READ, SET, WRITE, World, booking, ok, plan, text_of

# --- commit ---------------------------------------------------------------------------------------------


async def test_a_message_and_its_calls_become_durable_together(world: World) -> None:
    turn = await world.begins()
    message = await world.commits(turn, ("a", READ), ("w", WRITE), bookings=[booking(), booking(None)])
    assert (await world.transcript())[-1] == message
    rows = {row.id: row for row in await world.rows(t.calls)}
    assert {key: row.state for key, row in rows.items()} == {"a": "started", "w": "issued"}
    assert {key: row.attempts for key, row in rows.items()} == {"a": 1, "w": 0}
    assert rows["a"].started_at is not None
    assert rows["w"].started_at is None
    assert [row.cost_usd for row in await world.rows(t.requests)] == [0.01, None]
    assert (await world.one(t.turns, id=turn.fence.turn_id)).steps == 1


async def test_calls_are_numbered_through_the_whole_conversation(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("b", READ))
    await world.closes(turn)
    await world.commits(turn, ("c", READ))
    assert [(row.id, row.number, row.step) for row in await world.rows(t.calls)] == [
        ("a", 1, 1),
        ("b", 2, 1),
        ("c", 3, 2),
    ]


async def test_a_call_that_will_never_run_has_its_result_from_the_start(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, plan("a", result=not_executed("the input is no JSON")))
    row = await world.one(t.calls)
    assert (row.state, row.outcome, row.attempts) == ("done", "not_executed", 0)
    assert row.finished_at is not None


@pytest.mark.parametrize("signal", [Signal.STEER, Signal.STOP])
async def test_a_commit_after_a_steer_or_stop_was_decided_is_refused_and_leaves_nothing(
    world: World, signal: Signal
) -> None:
    turn = await world.begins()
    await (world.says("look", "Ben") if signal is Signal.STEER else world.stops("Ben"))
    before = await world.transcript()
    with pytest.raises(Signalled) as refused:
        await world.commits(turn, ("a", READ), bookings=[booking()])
    assert (refused.value.held.signal, refused.value.held.by) == (signal, "Ben")
    assert await world.transcript() == before
    assert await world.rows(t.calls) == await world.rows(t.requests) == []


async def test_a_protected_commit_passes_a_steer_but_no_stop(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.commits(turn, ("a", READ), past_steers=True)
    await world.closes(turn)
    await world.stops()
    with pytest.raises(Signalled):
        await world.commits(turn, ("b", READ), past_steers=True)


async def test_a_steer_that_was_withdrawn_refuses_nothing(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.stores(Deletion(world.thread, "slack:C1:2"))
    await world.commits(turn, ("a", READ))


async def test_a_commit_ticks_off_the_messages_that_the_request_carried(world: World) -> None:
    turn = await world.begins()
    queued = await world.queues()
    await world.commits(turn, ("a", READ))
    assert [row.receipt for row in await world.rows(t.inbox, fate="read")] == ["white_check_mark"]
    assert (await world.one(t.inbox, seq=queued)).receipt == "clock4"


# --- begin ----------------------------------------------------------------------------------------------


async def test_a_side_effect_is_marked_started_before_it_is_sent(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("w", WRITE))
    await world.marks_started(turn, "w")
    row = await world.one(t.calls)
    assert (row.state, row.attempts) == ("started", 1)
    assert row.started_at is not None


async def test_a_side_effect_is_never_started_twice(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("w", WRITE))
    await world.marks_started(turn, "w")
    with pytest.raises(RuleBroken):
        await world.marks_started(turn, "w")
    assert (await world.one(t.calls)).attempts == 1


@pytest.mark.parametrize("tool_class", [READ, SET])
async def test_what_may_be_repeated_is_counted(world: World, tool_class: ToolClass) -> None:
    turn = await world.begins()
    await world.commits(turn, plan("a", tool_class))
    await world.marks_started(turn, "a")
    assert (await world.one(t.calls)).attempts == 2


async def test_a_call_with_its_result_is_not_started_again(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a")
    with pytest.raises(RuleBroken):
        await world.marks_started(turn, "a")


# --- result ---------------------------------------------------------------------------------------------


async def test_a_result_is_kept_as_it_came(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    result = CallResult(Outcome.ERROR, "no such label", "rate(x)", "last 1 h")
    await world.returns(turn, "a", result)
    row = await world.one(t.calls)
    assert (row.state, row.outcome, row.result, row.query, row.time_range) == (
        "done",
        "error",
        "no such label",
        "rate(x)",
        "last 1 h",
    )


async def test_the_first_result_of_a_call_stands(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a", ok("first"))
    await world.returns(turn, "a", ok("second"))
    assert (await world.one(t.calls)).result == "first"


async def test_charts_are_queued_for_the_thread_once(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    result = CallResult(Outcome.OK, "fine", charts=(Chart("p99", b"png"), Chart("p50", b"png2")))
    await world.returns(turn, "a", result)
    await world.returns(turn, "a", result)
    rows = await world.rows(t.outbox)
    assert [(row.kind, row.text, row.picture) for row in rows] == [
        ("chart", "p99", b"png"),
        ("chart", "p50", b"png2"),
    ]


@pytest.mark.parametrize(
    "result, left",
    [
        (ok(), 0),
        (CallResult(Outcome.ERROR, "no"), 0),
        (CallResult(Outcome.TIMED_OUT, "no answer"), 0),
        (outcome_unknown(), 2),
        (not_executed("lost"), 2),
    ],
    ids=lambda given: given.outcome if isinstance(given, CallResult) else "",
)
async def test_a_result_is_progress_unless_it_only_says_that_there_is_none(
    world: World, result: CallResult, left: int
) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.change(t.conversations, {"id": world.id}, lost_in_a_row=2)
    await world.returns(turn, "a", result)
    assert (await world.conversation()).lost_in_a_row == left


async def test_a_commit_is_progress(world: World) -> None:
    turn = await world.begins()
    await world.change(t.conversations, {"id": world.id}, lost_in_a_row=2, discarded_in_a_row=2)
    await world.commits(turn, ("a", READ))
    conversation = await world.conversation()
    assert (conversation.lost_in_a_row, conversation.discarded_in_a_row) == (0, 0)


# --- close ----------------------------------------------------------------------------------------------


async def test_the_close_answers_every_call_once_in_the_order_of_the_message(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("b", READ), ("a", READ), ("c", READ))
    for call_id in ("a", "c", "b"):
        await world.returns(turn, call_id, ok(f"result of {call_id}"))
    message = await world.closes(turn)
    results = [block for block in message.blocks if isinstance(block, Result)]
    assert [result.call_id for result in results] == ["b", "a", "c"]
    assert "result of b" in results[0].text
    assert (await world.transcript())[-1] == message
    assert {row.closed for row in await world.rows(t.calls)} == {True}


async def test_a_result_that_is_no_success_is_marked_as_an_error(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("b", READ))
    await world.returns(turn, "a")
    await world.returns(turn, "b", CallResult(Outcome.TIMED_OUT, "no answer within 30 s"))
    message = await world.closes(turn)
    assert [block.is_error for block in message.blocks if isinstance(block, Result)] == [False, True]


async def test_context_that_came_meanwhile_stands_behind_the_results(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.says("it is the disk, Cleo", "Ben", source=Source.THREAD_REPLY, addressed=Addressed.PERSON)
    await world.returns(turn, "a")
    message = await world.closes(turn)
    assert isinstance(message.blocks[0], Result)
    assert "it is the disk" in text_of([message])
    assert (await world.one(t.inbox, effect="context")).turn_id == turn.fence.turn_id


async def test_a_cut_is_stamped_with_the_close_and_only_once(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.returns(turn, "a")
    await world.closes(turn, Signal.STEER, "Ben")
    row = await world.one(t.turns, id=turn.fence.turn_id)
    assert (row.stamp, row.stamp_by) == ("steered", "Ben")
    assert row.stamped_at is not None


async def test_a_close_without_a_cut_leaves_no_stamp(world: World) -> None:
    turn = await world.begins()
    await world.steps_once(turn)
    assert (await world.one(t.turns, id=turn.fence.turn_id)).stamp is None


# --- say ------------------------------------------------------------------------------------------------


async def test_what_a_turn_does_is_said_in_bounded_words_and_failed_requests_are_booked(world: World) -> None:
    turn = await world.begins()
    before = (await world.one(t.cards)).wanted
    await world.database.write(steps.say, turn.fence, "x" * 1000, [booking()])
    assert (await world.one(t.turns, id=turn.fence.turn_id)).activity == "x" * 400
    assert len(await world.rows(t.requests)) == 1
    assert (await world.one(t.cards)).wanted == before + 1
    await world.commits(turn, ("a", READ))
    assert (await world.one(t.turns, id=turn.fence.turn_id)).activity == ""

"""The checker of invariants finds each bug that is planted in a database, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from core.settle import failed
from core.signals import Signal
from storage import tables as t
from tests import invariants
from tests.storage.world import READ, WRITE, World, booking

Bug = Callable[[World], Awaitable[None]]


async def whole_analysis(world: World) -> World:
    """Two turns with a step each, a steer between them, an answer; everything shown."""
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE), bookings=[booking()])
    await world.marks_started(turn, "w")
    await world.returns(turn, "a")
    await world.returns(turn, "w")
    await world.says("look at the deploy", "Ben")
    await world.closes(turn, Signal.STEER)
    await world.cut(turn, Signal.STEER)
    turn = await world.starts()
    await world.steps_once(turn, "b")
    await world.settles(turn, bookings=[booking()])
    await world.shows_everything()
    return world


async def turn_ids(world: World) -> list[str]:
    return [row.id for row in sorted(await world.rows(t.turns), key=lambda row: row.number)]


async def test_nothing_is_wrong_with_an_analysis_that_went_well(world: World) -> None:
    await whole_analysis(world)
    assert await invariants.broken(world.database, at_rest=True) == []


async def test_nothing_is_wrong_in_motion(world: World) -> None:
    turn = await world.begins()
    assert await invariants.broken(world.database) == []
    await world.commits(turn, ("a", READ), bookings=[booking()])
    assert await invariants.broken(world.database) == []
    await world.loses_its_worker()
    await world.reaps()
    assert await invariants.broken(world.database) == []


async def test_nothing_is_wrong_after_a_failure(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, failed("no model"))
    await world.shows_everything()
    assert await invariants.broken(world.database, at_rest=True) == []


async def settled_twice_over(world: World) -> None:
    first, _ = await turn_ids(world)
    await world.change(t.conversations, {"id": world.id}, active_turn=first)


async def settle_record_lost(world: World) -> None:
    from sqlalchemy import delete  # noqa: PLC0415

    first, _ = await turn_ids(world)

    async def write(tx: object) -> None:
        await tx.execute(delete(t.settlements).where(t.settlements.c.turn_id == first))  # type: ignore[attr-defined]

    await world.database.write(write)


async def unknown_reason(world: World) -> None:
    first, _ = await turn_ids(world)
    await world.change(t.turns, {"id": first}, stamp="tired")


async def final_message_of_another(world: World) -> None:
    _, second = await turn_ids(world)
    await world.change(t.settlements, {"turn_id": second}, final_event_id="event_other")


async def answer_not_queued(world: World) -> None:
    await world.change(t.outbox, {"kind": "answer"}, kind="note")


async def stop_without_effect(world: World) -> None:
    _, second = await turn_ids(world)
    row = (await world.rows(t.inbox))[0]
    await world.insert(
        t.tombstones, inbox_seq=row.seq, conversation_id=world.id, turn_id=second, by="Ana", at=1.0
    )


async def token_went_back(world: World) -> None:
    await world.change(t.conversations, {"id": world.id}, token=1)


async def old_token_wrote_a_turn(world: World) -> None:
    _, second = await turn_ids(world)
    await world.change(t.turns, {"id": second}, token=1)


async def turn_number_skipped(world: World) -> None:
    _, second = await turn_ids(world)
    await world.change(t.turns, {"id": second}, number=7)


async def resumed_what_had_ended(world: World) -> None:
    first, second = await turn_ids(world)
    await world.change(t.turns, {"id": first}, resumes_turn=second)


async def transcript_rewritten(world: World) -> None:
    await world.change(t.transcript, {"position": 2}, blocks=[{"type": "text", "text": "nothing"}])


async def transcript_with_a_gap(world: World) -> None:
    await world.change(t.transcript, {"position": 0}, position=99)


async def call_unknown_to_the_table(world: World) -> None:
    await world.change(t.calls, {"id": "a"}, id="z")


async def call_number_given_twice(world: World) -> None:
    await world.change(t.calls, {"id": "b"}, number=1)


async def batch_left_open(world: World) -> None:
    await world.change(t.calls, {"id": "b"}, closed=False)


async def side_effect_repeated(world: World) -> None:
    await world.change(t.calls, {"id": "w"}, attempts=2)


async def done_without_outcome(world: World) -> None:
    await world.change(t.calls, {"id": "a"}, outcome=None)


async def result_of_a_call_never_started(world: World) -> None:
    await world.change(t.calls, {"id": "w"}, attempts=0)


async def read_by_nobody(world: World) -> None:
    await world.change(t.inbox, {"effect": "steer"}, turn_id=None)


async def denied_and_read(world: World) -> None:
    await world.change(t.inbox, {"effect": "steer"}, effect="deny")


async def half_decided(world: World) -> None:
    await world.change(t.inbox, {"effect": "steer"}, rule=None)


async def cost_not_booked(world: World) -> None:
    await world.change(t.requests, {"purpose": "step"}, purpose="title")


async def card_of_nobody(world: World) -> None:
    first, _ = await turn_ids(world)
    await world.change(t.turns, {"id": first}, card_id=None)


async def resume_forgotten(world: World) -> None:
    first, _ = await turn_ids(world)
    await world.change(t.conversations, {"id": world.id}, resume_turn=first)


async def message_waits_for_ever(world: World) -> None:
    await world.change(t.inbox, {"effect": "steer"}, fate="waiting", receipt="eyes", receipt_shown="eyes")


async def card_left_live(world: World) -> None:
    first, _ = await turn_ids(world)
    await world.change(t.settlements, {"turn_id": first}, card_released_at=None)


async def card_behind(world: World) -> None:
    _, second = await turn_ids(world)
    await world.change(t.cards, {"turn_id": second}, wanted=1_000)


async def answer_not_posted(world: World) -> None:
    _, second = await turn_ids(world)
    await world.change(t.settlements, {"turn_id": second}, answer_posted_at=None)


async def post_left_open(world: World) -> None:
    await world.change(t.outbox, {"kind": "answer"}, done_at=None)


async def receipt_not_shown(world: World) -> None:
    await world.change(t.inbox, {"effect": "steer"}, receipt_shown=None)


BUGS: list[tuple[Bug, invariants.Law]] = [
    (settled_twice_over, invariants.at_most_one_turn_runs),
    (settle_record_lost, invariants.at_most_one_turn_runs),
    (unknown_reason, invariants.every_reason_is_known),
    (final_message_of_another, invariants.a_completed_turn_names_its_final_message),
    (answer_not_queued, invariants.a_completed_turn_owes_one_answer),
    (stop_without_effect, invariants.a_stop_stands),
    (token_went_back, invariants.tokens_only_rise),
    (old_token_wrote_a_turn, invariants.tokens_only_rise),
    (turn_number_skipped, invariants.turns_are_numbered_in_a_row),
    (resumed_what_had_ended, invariants.what_goes_on_goes_on_once),
    (transcript_rewritten, invariants.every_call_is_answered_right_behind),
    (transcript_with_a_gap, invariants.every_call_is_answered_right_behind),
    (call_unknown_to_the_table, invariants.calls_and_transcript_agree),
    (call_number_given_twice, invariants.calls_are_numbered_once),
    (batch_left_open, invariants.one_batch_is_open_and_somebody_has_it),
    (batch_left_open, invariants.no_batch_is_open),
    (side_effect_repeated, invariants.a_side_effect_is_started_at_most_once),
    (done_without_outcome, invariants.a_call_that_is_done_says_how),
    (result_of_a_call_never_started, invariants.a_call_that_is_done_says_how),
    (read_by_nobody, invariants.every_message_has_one_effect),
    (denied_and_read, invariants.every_message_has_one_effect),
    (half_decided, invariants.every_message_has_one_effect),
    (cost_not_booked, invariants.every_step_was_paid_for),
    (card_of_nobody, invariants.every_turn_has_its_card),
    (resume_forgotten, invariants.nothing_runs),
    (message_waits_for_ever, invariants.no_message_waits),
    (card_left_live, invariants.every_card_is_released),
    (card_behind, invariants.every_card_is_released),
    (answer_not_posted, invariants.every_answer_is_posted),
    (post_left_open, invariants.nothing_is_left_to_say),
    (receipt_not_shown, invariants.every_receipt_is_shown),
]


@pytest.mark.parametrize("bug, law", BUGS, ids=lambda thing: thing.__name__)
async def test_a_planted_bug_is_named(world: World, bug: Bug, law: invariants.Law) -> None:
    await whole_analysis(world)
    await bug(world)
    found = await invariants.broken(world.database, at_rest=True)
    assert any(line.startswith(f"{law.__name__}:") for line in found), found


def test_every_law_has_a_planted_bug() -> None:
    assert {law for _, law in BUGS} == {*invariants.ALWAYS, *invariants.AT_REST}

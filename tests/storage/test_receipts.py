"""A message bears the one reaction that says what became of it."""

from __future__ import annotations

from typing import Any

from core.arrivals import Deletion, Edit
from storage import receipts
from storage import tables as t
from tests.storage.world import THREAD, World, booking


async def due(world: World) -> list[tuple[str, Any, Any]]:
    rows = await world.database.read(receipts.due, "w1")
    return [(row.message_ref, row.receipt, row.receipt_shown) for row in rows]


async def show(world: World) -> None:
    for row in await world.database.read(receipts.due, "w1"):
        await world.database.write(receipts.shown, row.seq, row.receipt)


async def test_the_receipt_follows_the_message_through_its_life(world: World) -> None:
    turn = await world.begins()
    await show(world)
    await world.queues()
    assert await due(world) == [("2", "clock4", None)]
    await show(world)
    await world.settles(turn, bookings=[booking()])
    assert await due(world) == [("1", "white_check_mark", "eyes")]
    await show(world)
    await world.starts()
    assert await due(world) == [("2", "eyes", "clock4")]


async def test_a_withdrawn_message_loses_its_receipt(world: World) -> None:
    await world.says()
    await show(world)
    await world.stores(Deletion(THREAD, "slack:C1:1"))
    assert await due(world) == [("1", None, "eyes")]


async def test_an_edited_message_has_its_receipt_once(world: World) -> None:
    await world.says("one")
    await show(world)
    await world.stores(Edit(THREAD, "slack:C1:1", "edit 1", "two"))
    assert await due(world) == []
    turn = await world.starts()
    await world.settles(turn, bookings=[booking()])
    assert await due(world) == [("1", "white_check_mark", "eyes")]


async def test_an_edit_while_the_receipt_is_on_its_way_takes_it_over(world: World) -> None:
    await world.says("one")
    [on_its_way] = await world.database.read(receipts.due, "w1")
    await world.stores(Edit(THREAD, "slack:C1:1", "edit 1", "two"))
    await world.database.write(receipts.shown, on_its_way.seq, on_its_way.receipt)
    assert await due(world) == []
    await world.settles(await world.starts(), bookings=[booking()])
    assert await due(world) == [("1", "white_check_mark", "eyes")]


async def test_who_is_refused_or_is_a_bot_gets_no_receipt(world: World) -> None:
    await world.says("x", "Gil")
    await world.says("x", "Robo", author_is_bot=True)
    assert await due(world) == []


async def test_what_the_platform_did_not_take_is_tried_again_later(world: World) -> None:
    await world.says()
    [row] = await world.database.read(receipts.due, "w1")
    await world.database.write(receipts.try_later, row, 60.0, in_doubt=False)
    assert await due(world) == []
    assert (await world.one(t.inbox)).receipt_tries == 1
    await world.change(t.inbox, {}, receipt_not_before=0)
    await show(world)
    assert await due(world) == []
    assert (await world.one(t.inbox)).receipt_tries == 0


async def test_a_reaction_whose_answer_was_lost_is_due_until_one_comes_and_goes_before_the_next(
    world: World,
) -> None:
    await world.says("one")
    [row] = await world.database.read(receipts.due, "w1")
    await world.database.write(receipts.try_later, row, -1.0, in_doubt=True)
    assert await due(world) == [("1", "eyes", "eyes?")]
    await world.settles(await world.starts(), bookings=[booking()])
    [row] = await world.database.read(receipts.due, "w1")
    assert (row.receipt, receipts.may_stand(row)) == ("white_check_mark", ["eyes"])
    await world.database.write(receipts.try_later, row, -1.0, in_doubt=True)
    [row] = await world.database.read(receipts.due, "w1")
    assert receipts.may_stand(row) == ["eyes", "white_check_mark"]
    await world.database.write(receipts.shown, row.seq, row.receipt)
    assert await due(world) == []


async def test_a_reaction_that_was_asked_for_may_stand_whatever_became_of_the_process(world: World) -> None:
    await world.says()
    [row] = await world.database.read(receipts.due, "w1")
    await world.database.write(receipts.begin, row)
    turn = await world.starts()
    await world.settles(turn, bookings=[booking()])
    [row] = await world.database.read(receipts.due, "w1")
    assert (row.receipt, receipts.may_stand(row)) == ("white_check_mark", ["eyes"])


async def test_a_reaction_that_was_surely_refused_does_not_stand(world: World) -> None:
    await world.says()
    [row] = await world.database.read(receipts.due, "w1")
    await world.database.write(receipts.begin, row)
    await world.database.write(receipts.try_later, row, -1.0, in_doubt=False)
    [row] = await world.database.read(receipts.due, "w1")
    assert receipts.may_stand(row) == []

"""The state of the whole fleet, and how long people waited, read from the records."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from core.signals import Signal
from storage import cards, gauges, outbox, settlements
from storage import tables as t
from storage.gauges import FLEET, Fleet
from tests.storage.world import World


async def fleet(world: World) -> Fleet:
    return await world.database.read(gauges.fleet)


async def test_where_nothing_ever_happened_nothing_is_old(world: World) -> None:
    assert await fleet(world) == Fleet(0.0, 0.0, 0)


async def test_no_table_is_walked_for_the_state_of_the_fleet(world: World) -> None:
    """A scrape costs what is open, not what has ever been."""

    async def plan(tx: AsyncConnection) -> str:
        if not world.database.is_sqlite:
            await tx.execute(text("set local enable_seqscan = off"))  # small tables are walked by right
        explain = "explain query plan " if world.database.is_sqlite else "explain "
        statement = str(FLEET.compile(dialect=tx.dialect, compile_kwargs={"literal_binds": True}))
        return "\n".join(str(row) for row in (await tx.execute(text(explain + statement))).all())

    found = await world.database.read(plan)
    walked = [
        line
        for line in found.splitlines()
        if "Seq Scan" in line or ("SCAN" in line and "USING" not in line and "CONSTANT ROW" not in line)
    ]
    assert walked == [], found


async def test_the_oldest_message_that_was_not_delivered_gives_the_age_of_the_outbox(world: World) -> None:
    await world.hears()
    for number, queued_ago in enumerate((10, 70, 300)):
        await world.database.write(outbox.queue, world.id, kind="note", once=f"n{number}", text="hm")
        await world.change(t.outbox, {"once": f"n{number}"}, queued_at=await world.now() - queued_ago)
    first, second, _ = [row.id for row in await world.rows(t.outbox)]
    assert (await fleet(world)).outbox_age_s == pytest.approx(300, abs=5)
    await world.change(t.outbox, {"once": "n2"}, done_at=await world.now())
    assert (await fleet(world)).outbox_age_s == pytest.approx(70, abs=5)
    await world.database.write(outbox.give_up, second, "channel_not_found")
    assert (await fleet(world)).outbox_age_s == pytest.approx(10, abs=5)
    await world.database.write(outbox.part_done, first, 1, 1)
    assert (await fleet(world)).outbox_age_s == 0


async def test_a_turn_grows_old_until_it_is_settled(world: World) -> None:
    turn = await world.begins()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=await world.now() - 90)
    assert (await fleet(world)).oldest_unsettled_turn_s == pytest.approx(90, abs=5)
    await world.settles(turn)
    assert (await fleet(world)).oldest_unsettled_turn_s == 0


async def test_a_turn_that_lost_its_worker_grows_old_all_the_same(world: World) -> None:
    turn = await world.begins()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=await world.now() - 90)
    await world.loses_its_worker()
    assert (await fleet(world)).oldest_unsettled_turn_s == pytest.approx(90, abs=5)


async def test_a_card_counts_from_its_turns_settle_until_the_platform_took_the_release(world: World) -> None:
    turn = await world.begins()
    await world.shows_everything()
    assert (await fleet(world)).unreleased_cards == 0
    await world.settles(turn)
    assert (await fleet(world)).unreleased_cards == 1
    await world.shows_everything()
    assert (await fleet(world)).unreleased_cards == 0


async def test_a_card_that_was_given_up_or_handed_on_does_not_count(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the deploy", "Ben")
    await world.cut(turn, Signal.STEER, discarded=True)
    await world.falls_quiet()
    await world.starts()
    [settlement] = await world.rows(t.settlements)
    assert settlement.card_released_at is None
    assert (await fleet(world)).unreleased_cards == 0
    await world.loses_its_worker()
    await world.database.write(settlements.settle_dead_turn, world.id, "w2", 3600.0)
    assert (await fleet(world)).unreleased_cards == 1
    card = await world.one(t.cards)
    await world.database.write(cards.give_up, card.id, "channel_not_found")
    assert (await fleet(world)).unreleased_cards == 0


async def test_a_cut_is_measured_from_the_decision_of_the_first_steer(world: World) -> None:
    turn = await world.begins()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=await world.now() - 60)
    for words, decided_ago in (("look at the deploy", 30), ("and the disk", 10)):
        seq = await world.says(words, "Ben")
        await world.change(t.inbox, {"seq": seq}, decided_at=await world.now() - decided_ago)
    await world.cut(turn, Signal.STEER)
    waited = await world.database.read(gauges.cut_wait_s, turn.fence.turn_id)
    assert waited == pytest.approx(30, abs=5)


async def test_a_cut_has_nothing_to_do_with_what_cut_an_earlier_turn(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the deploy", "Ben")
    await world.cut(turn, Signal.STEER)
    await world.change(t.inbox, {"effect": "steer"}, decided_at=await world.now() - 300)
    await world.falls_quiet()
    following = await world.starts()
    await world.says("and the disk", "Ben")
    await world.cut(following, Signal.STEER)
    waited = await world.database.read(gauges.cut_wait_s, following.fence.turn_id)
    assert waited == pytest.approx(0, abs=5)


async def test_a_stop_is_measured_from_its_own_decision(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the deploy", "Ben")
    await world.change(t.inbox, {"effect": "steer"}, decided_at=await world.now() - 30)
    await world.stops()
    await world.change(t.tombstones, {"turn_id": turn.fence.turn_id}, at=await world.now() - 10)
    await world.cut(turn, Signal.STOP)
    waited = await world.database.read(gauges.cut_wait_s, turn.fence.turn_id)
    assert waited == pytest.approx(10, abs=5)


async def test_an_ending_that_nobody_asked_for_has_no_wait(world: World) -> None:
    turn = await world.begins()
    assert await world.database.read(gauges.cut_wait_s, turn.fence.turn_id) is None
    await world.settles(turn)
    assert await world.database.read(gauges.cut_wait_s, turn.fence.turn_id) is None


async def test_a_steer_is_read_by_the_turn_that_took_it(world: World) -> None:
    turn = await world.begins()
    await world.says("look at the deploy", "Ben")
    await world.cut(turn, Signal.STEER)
    await world.falls_quiet()
    following = await world.starts()
    await world.change(t.inbox, {"effect": "steer"}, decided_at=await world.now() - 20)
    read = gauges.steer_wait_s
    assert await world.database.read(read, world.id, turn.fence.turn_id) is None
    waited = await world.database.read(read, world.id, following.fence.turn_id)
    assert waited == pytest.approx(20, abs=5)

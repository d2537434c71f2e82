"""One query says what there is to do, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.signals import Signal
from storage import agenda, cards
from storage import tables as t
from storage.agenda import Agenda
from tests.storage.world import World, booking

NOTHING = Agenda(None, None, None, None, None, False, False, False, ())


async def seen(world: World, owner: str = "p1") -> Agenda:
    """What this process sees. Nobody holds a lock on a name in these tests: `silent_owners` has its own."""
    found = await world.database.read(agenda.look, owner, 3.0, 10.0)
    return replace(found, silent_owners=())


async def test_where_nothing_happens_there_is_nothing_to_do(world: World) -> None:
    assert await seen(world) == NOTHING
    await world.hears()
    assert await seen(world) == NOTHING  # whoever took it in decides it at once


async def test_a_message_that_nobody_decided_about_is_for_everybody(world: World) -> None:
    await world.hears()
    await world.change(t.inbox, {}, received_at=await world.now() - 2)
    assert (await seen(world)).decisions == 0


async def test_work_is_due_when_it_may_be_claimed(world: World) -> None:
    await world.says()
    assert (await seen(world)).work == 0
    turn = await world.starts()
    assert (await seen(world)).work is None
    await world.says("look", "Ben")
    await world.cut(turn, Signal.STEER)
    await world.change(t.conversations, {}, not_before=await world.now() + 5)
    assert (await seen(world)).work == pytest.approx(5, abs=1)


async def test_a_card_is_due_after_its_interval_and_at_once_when_it_is_released(world: World) -> None:
    turn = await world.begins()
    assert (await seen(world)).cards == 0
    [card] = [row.id for row in await world.database.read(cards.due, "w1", 0.0)]
    await world.shows(card)
    await world.change(t.claims, {}, until=0)
    assert (await seen(world)).cards is None
    await world.steps_once(turn)
    assert (await seen(world)).cards == pytest.approx(3, abs=1)
    await world.settles(turn, bookings=[booking()])
    assert (await seen(world)).cards == 0


async def test_a_live_card_that_stands_still_is_due(world: World) -> None:
    await world.begins()
    [card] = [row.id for row in await world.database.read(cards.due, "w1", 0.0)]
    await world.shows(card)
    await world.change(t.cards, {}, shown_at=await world.now() - 20)
    assert (await seen(world)).cards == 0


async def test_of_a_thread_only_the_next_message_counts(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    assert (await seen(world)).posts == 0
    await world.change(t.outbox, {"kind": "answer"}, not_before=await world.now() + 30)
    await world.queues("later: more", "Gil")  # refused, privately: behind the answer
    assert (await seen(world)).posts == pytest.approx(30, abs=1)


async def test_a_receipt_is_due_until_it_is_shown(world: World) -> None:
    await world.says()
    assert (await seen(world)).receipts == 0
    await world.shows_everything()
    assert (await seen(world)).receipts is None


async def test_a_turn_whose_lease_ended_is_dead(world: World) -> None:
    await world.begins()
    assert not (await seen(world)).dead_turns
    await world.loses_its_worker()
    assert (await seen(world)).dead_turns


async def test_who_works_elsewhere_is_seen(world: World) -> None:
    await world.begins()  # w1
    assert (await seen(world, "p1")).leases_elsewhere
    assert not (await seen(world, "w1")).leases_elsewhere


async def test_a_card_that_stayed_live_is_late(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    await world.change(t.cards, {}, shown=100)
    assert not (await seen(world)).late_cards
    await world.change(t.settlements, {}, settled_at=await world.now() - 20)
    assert (await seen(world)).late_cards

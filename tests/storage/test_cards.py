"""A card is compared with what was last shown; releases go first, and only what was shown counts."""

from __future__ import annotations

import pytest

from core.arrivals import Thread
from core.signals import Signal
from storage import cards
from storage import tables as t
from storage.turns import StartedTurn
from tests.storage.world import READ, World, booking


async def due(world: World, min_interval_s: float = 0.0) -> list[str]:
    return [row.id for row in await world.database.read(cards.due, "w1", min_interval_s)]


async def card_id(world: World, turn: StartedTurn) -> str:
    return str((await world.one(t.turns, id=turn.fence.turn_id)).card_id)


async def released(world: World) -> list[bool]:
    """Whether the card of each turn counts as released, by number."""
    at = {row.turn_id: row.card_released_at is not None for row in await world.rows(t.settlements)}
    numbered = sorted(await world.rows(t.turns), key=lambda row: row.number)
    return [at[row.id] for row in numbered if row.id in at]


# --- due ------------------------------------------------------------------------------------------------


async def test_a_new_card_is_due_at_once_and_a_shown_one_is_not(world: World) -> None:
    card = await card_id(world, await world.begins())
    assert await due(world, 30.0) == [card]
    await world.shows(card)
    assert await due(world) == []


async def test_progress_waits_for_the_interval_and_a_release_does_not(world: World) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    await world.shows(card)
    await world.commits(turn, ("a", READ), bookings=[booking()])
    assert await due(world, 30.0) == []
    assert await due(world, 0.0) == [card]
    await world.settles(turn, bookings=[booking()])
    assert await due(world, 30.0) == [card]


async def test_a_stop_does_not_wait_either(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.shows(card)
    await world.stops()
    assert await due(world, 30.0) == [card]
    await world.shows(card)
    assert not (await world.one(t.cards)).urgent


async def test_releases_go_before_everything_else(world: World) -> None:
    other = World(world.database, Thread("slack", "T1", "C1", "9"))
    first = await world.begins()
    seq = (await other.stores(other.message(key="other")))[0].seq
    assert seq is not None
    await other.decides(seq)
    second = await other.starts()
    await other.settles(second, bookings=[booking()])
    assert await due(world) == [await card_id(other, second), await card_id(world, first)]


async def test_it_is_known_when_the_next_card_will_be_due(world: World) -> None:
    assert await world.database.read(cards.next_due_in, "w1", 30.0) is None
    turn = await world.begins()
    await world.shows(await card_id(world, turn))
    await world.commits(turn, ("a", READ))
    seconds = await world.database.read(cards.next_due_in, "w1", 30.0)
    assert seconds is not None
    assert 25 < seconds <= 30


async def test_what_the_platform_did_not_take_is_due_again_later(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.begin_post, card)
    await world.database.write(cards.try_later, card, 30.0, not_sent=False)
    row = await world.one(t.cards)
    assert row.tries == 1
    assert row.posting_since is not None
    assert await due(world) == []
    await world.database.write(cards.try_later, card, 0.0, not_sent=True)
    assert (await world.one(t.cards)).posting_since is None
    assert await due(world) == [card]


async def test_the_time_of_the_first_try_to_post_is_kept(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.begin_post, card)
    first = (await world.one(t.cards)).posting_since
    await world.database.write(cards.begin_post, card)
    assert (await world.one(t.cards)).posting_since == first


# --- shown ----------------------------------------------------------------------------------------------


async def test_what_changed_while_it_was_shown_is_due_again(world: World) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    revision = (await world.one(t.cards)).wanted
    await world.commits(turn, ("a", READ))
    await world.shows(card, revision=revision)
    assert await due(world) == [card]


async def test_a_stop_that_came_while_progress_was_shown_stays_urgent(world: World) -> None:
    card = await card_id(world, await world.begins())
    revision = (await world.one(t.cards)).wanted
    await world.stops()
    await world.shows(card, revision=revision)
    assert await due(world, 30.0) == [card]


async def test_a_turn_counts_as_released_once_its_released_state_was_shown(world: World) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    await world.shows(card)
    await world.settles(turn, bookings=[booking()])
    assert await released(world) == [False]
    await world.shows(card)
    assert await released(world) == [True]


async def test_a_turn_counts_as_released_once_its_card_names_a_later_turn(world: World) -> None:
    first = await world.begins()
    await world.shows(await card_id(world, first))
    await world.cut(first, Signal.DRAIN)
    second = await world.starts()
    assert await released(world) == [False]
    await world.shows(await card_id(world, second))
    assert await released(world) == [True]


@pytest.mark.parametrize("state", [True, False])
async def test_what_was_on_its_way_for_an_earlier_turn_releases_no_later_one(
    world: World, state: bool
) -> None:
    first = await world.begins()
    await world.cut(first, Signal.DRAIN)
    second = await world.starts()
    await world.settles(second, bookings=[booking()])
    card = await card_id(world, second)
    await world.shows(card, turn_id=first.fence.turn_id, released=state, revision=1)
    assert await released(world) == [state, False]
    await world.shows(card)
    assert await released(world) == [True, True]


async def test_the_time_of_a_release_is_that_of_the_first(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    card = await card_id(world, turn)
    await world.shows(card)
    first = (await world.one(t.settlements)).card_released_at
    await world.shows(card)
    assert (await world.one(t.settlements)).card_released_at == first


# --- lost, found, gone ----------------------------------------------------------------------------------


async def test_a_post_that_had_arrived_is_taken_as_the_cards_message(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.begin_post, card)
    await world.database.write(cards.try_later, card, 60.0, not_sent=False)
    await world.database.write(cards.found, card, "1700.1")
    row = await world.one(t.cards)
    assert (row.message_ref, row.posting_since) == ("1700.1", None)
    assert await due(world) == [card]


async def test_a_card_whose_message_is_gone_is_posted_anew(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.shows(card)
    await world.database.write(cards.post_anew, card)
    row = await world.one(t.cards)
    assert (row.message_ref, row.shown_digest, row.posted_anew) == (None, None, 1)
    assert await due(world) == [card]


async def test_a_card_that_the_platform_will_never_take_is_left_alone_with_a_record(world: World) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.give_up, card, "x" * 500)
    assert (await world.one(t.cards)).given_up == "x" * 200
    assert await due(world) == []
    assert await world.database.read(cards.next_due_in, "w1", 0.0) is None


async def test_a_card_that_was_given_up_gets_another_try_when_its_turn_ends_and_for_progress_none(
    world: World,
) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    await world.shows(card)
    await world.database.write(cards.give_up, card, "is_inactive")
    await world.commits(turn, ("a", READ), bookings=[booking()])
    assert await due(world) == []
    await world.database.write(cards.want, turn.fence.turn_id, urgent=True)
    assert await due(world) == [card]


@pytest.mark.parametrize("not_sent", [True, False])
async def test_whoever_gives_a_card_up_says_whether_it_may_have_been_posted(
    world: World, not_sent: bool
) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.begin_post, card)
    await world.database.write(cards.give_up, card, "is_archived", not_sent=not_sent)
    assert ((await world.one(t.cards)).posting_since is None) is not_sent


async def test_after_an_outage_what_waited_for_its_end_is_due_and_what_waits_for_longer_is_not(
    world: World,
) -> None:
    card = await card_id(world, await world.begins())
    await world.database.write(cards.try_later, card, 30.0, not_sent=True)
    assert await world.database.write(cards.due_again, 20.0) == 0
    assert await due(world) == []
    assert await world.database.write(cards.due_again, 40.0) == 1
    assert await due(world) == [card]


@pytest.mark.parametrize("why, tried", [("is_inactive: closed", True), (f"{cards.GONE}deleted", False)])
async def test_a_card_left_behind_is_tried_again_where_its_message_still_stands(
    world: World, why: str, tried: bool
) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    await world.shows(card)
    await world.settles(turn, bookings=[booking()])
    assert await world.database.read(cards.left_behind, world.id) == []
    await world.database.write(cards.give_up, card, why)
    left = await world.database.read(cards.left_behind, world.id)
    await world.database.write(cards.reopen, left)
    assert (left, await due(world)) == (([card], [card]) if tried else ([], []))


async def test_a_card_that_stayed_live_after_its_turn_is_asked_for_again(world: World) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    await world.shows(card)
    await world.settles(turn, bookings=[booking()])
    await world.change(t.cards, {"id": card}, shown=(await world.one(t.cards)).wanted)
    assert await due(world) == []
    assert await world.database.write(cards.sweep, 3600.0) == 0
    await world.change(t.settlements, {}, settled_at=await world.now() - 10)
    assert await world.database.write(cards.sweep, 5.0) == 1
    assert await due(world, 3600.0) == [card]
    await world.shows(card)
    assert await world.database.write(cards.sweep, 5.0) == 0


async def test_a_live_card_that_nothing_changes_is_shown_anew_from_time_to_time(world: World) -> None:
    turn = await world.begins()
    card = await card_id(world, turn)
    assert not await world.database.read(cards.is_heartbeat_due)
    await world.shows(card)
    await world.change(t.cards, {"id": card}, shown_at=await world.now() - 20)
    assert await world.database.read(cards.is_heartbeat_due)
    await world.database.write(cards.heartbeat)
    assert await due(world) == [card]
    await world.shows(card)
    await world.settles(turn, bookings=[booking()])
    await world.shows(card)
    await world.change(t.cards, {"id": card}, shown_at=await world.now() - 20)
    assert not await world.database.read(cards.is_heartbeat_due)


# --- what a card is made of -----------------------------------------------------------------------------


async def test_a_card_handed_on_shows_the_calls_of_all_its_turns(world: World) -> None:
    first = await world.begins()
    await world.steps_once(first, "a")
    await world.cut(first, Signal.DRAIN)
    second = await world.starts()
    await world.steps_once(second, "b")
    found = await world.database.read(cards.records, await card_id(world, second))
    assert [row.id for row in found.calls] == ["a", "b"]
    assert found.turn_ids == {first.fence.turn_id, second.fence.turn_id}
    assert found.turn.id == second.fence.turn_id
    assert len(found.requests) == 2
    assert found.settlement is None


async def test_it_knows_who_asked_to_stop_and_who_waits_to_be_read_while_it_runs(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.stops("Ana")
    card = await card_id(world, turn)
    found = await world.database.read(cards.records, card)
    assert (found.stop_by, found.steer_by) == ("Ana", "Ben")
    assert found.names["Ben"] == "Ben A."
    await world.cut(turn, Signal.STOP, "Ana")
    found = await world.database.read(cards.records, card)
    assert (found.stop_by, found.steer_by) == (None, None)
    assert found.settlement is not None


async def test_it_names_everybody_who_steered_the_analysis(world: World) -> None:
    first = await world.begins()
    await world.says("look", "Ben")
    await world.cut(first, Signal.STEER)
    second = await world.starts()
    found = await world.database.read(cards.records, await card_id(world, second))
    assert [row.author_id for row in found.steers] == ["Ben"]

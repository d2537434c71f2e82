"""One process at a time speaks to the platform about a thing; the embedded database has only one."""

from __future__ import annotations

import asyncio

from storage import cards, claims, outbox, receipts
from storage import tables as t
from storage.engine import Database
from tests.storage.world import World, booking


async def take(database: Database, owner: str, *things: str, for_s: float = 20.0) -> set[str]:
    return await database.write(claims.take, things, owner, for_s)


def others_get(database: Database, *things: str) -> set[str]:
    """What a second process is granted of what the first one holds: nothing, where there can be a second."""
    return set(things) if database.is_sqlite else set()


async def test_what_one_process_holds_no_other_gets(database: Database) -> None:
    assert await take(database, "p1", "card:a", "card:b") == {"card:a", "card:b"}
    assert await take(database, "p2", "card:a") == others_get(database, "card:a")
    assert await take(database, "p2", "card:a", "card:c") == {"card:c"} | others_get(database, "card:a")


async def test_who_holds_a_claim_may_take_it_again(database: Database) -> None:
    await take(database, "p1", "card:a")
    assert await take(database, "p1", "card:a") == {"card:a"}


async def test_of_many_who_want_it_at_once_one_gets_it(database: Database) -> None:
    granted = await asyncio.gather(*(take(database, f"p{number}", "card:a") for number in range(8)))
    assert len([one for one in granted if one]) == (8 if database.is_sqlite else 1)


async def test_what_is_given_back_is_free(database: Database) -> None:
    await take(database, "p1", "card:a")
    await database.write(claims.give_back, ["card:a"], "p2")  # not his to give
    assert await take(database, "p2", "card:a") == others_get(database, "card:a")
    await database.write(claims.give_back, ["card:a"], "p1")
    assert await take(database, "p2", "card:a") == {"card:a"}


async def test_a_claim_that_lapsed_is_free_and_its_holder_is_told(database: Database) -> None:
    await take(database, "p1", "card:a", for_s=-1)
    assert await take(database, "p2", "card:a") == {"card:a"}
    kept = await database.write(claims.renew, ["card:a"], "p1", 20.0)
    assert kept == others_get(database, "card:a")
    assert await database.write(claims.renew, ["card:a"], "p2", 20.0) == {"card:a"}


async def test_lapsed_claims_are_forgotten_after_a_while(world: World) -> None:
    now = await world.now()
    for thing, ago in (("card:new", 10), ("card:old", 100)):
        await world.insert(t.claims, thing=thing, owner="p1", until=now - ago)
    assert await world.database.write(claims.forget_lapsed, 50.0) == 1
    assert [row.thing for row in await world.rows(t.claims)] == ["card:new"]


# --- what a claim keeps others from -------------------------------------------------------------------------


async def due_to(world: World, owner: str) -> list[list[str]]:
    """What a process finds to show: cards, posts, receipts."""
    database = world.database
    return [
        [row.id for row in await database.read(cards.due, owner, 0.0)],
        [row.conversation_id for row in await database.read(outbox.due, owner)],
        [row.origin for row in await database.read(receipts.due, owner)],
    ]


async def test_a_process_finds_nothing_to_do_with_what_another_one_holds(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    [[card], [conversation], [origin]] = await due_to(world, "p1")
    things = cards.thing(card), outbox.thing(conversation), f"receipt:{origin}"
    for thing in things:  # as a process with this database would, wherever the table is used
        await world.insert(t.claims, thing=thing, owner="p1", until=await world.now() + 20)
    assert await due_to(world, "p1") == [[card], [conversation], [origin]]
    assert await due_to(world, "p2") == [[], [], []]
    await world.change(t.claims, {}, until=0)
    assert await due_to(world, "p2") == [[card], [conversation], [origin]]


async def test_who_lost_its_claim_while_it_showed_has_the_card_shown_once_more(world: World) -> None:
    turn = await world.begins()
    [card] = [row.id for row in await world.database.read(cards.due, "p1", 0.0)]
    await take(world.database, "p1", cards.thing(card))
    if not world.database.is_sqlite:
        await world.change(t.claims, {}, owner="p2")
        before = await world.one(t.cards, id=card)
        assert not await shown(world, card, "p1", turn.fence.turn_id)
        after = await world.one(t.cards, id=card)
        assert (after.shown, after.message_ref, after.urgent) == (before.shown, None, True)
        assert after.wanted > before.wanted
        assert await shown(world, card, "p2", turn.fence.turn_id)
    else:
        assert await shown(world, card, "p1", turn.fence.turn_id)


async def shown(world: World, card: str, owner: str, turn_id: str) -> bool:
    return await world.database.write(
        cards.shown, card, owner, revision=1, ref="ref", digest="digest", turn_id=turn_id, released=False
    )

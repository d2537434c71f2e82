"""One worker at a time may write to a conversation."""

from __future__ import annotations

import asyncio

from core.arrivals import AuthorRole, Source, Thread
from core.fairness import HEAD_START_S
from core.signals import Signal
from storage import conversations
from storage import tables as t
from tests.storage.world import READ, World, booking


async def release(world: World, claimed: conversations.Claimed) -> None:
    await world.database.write(conversations.release, claimed.fence)


async def renew(world: World, *claimed: conversations.Claimed, lease_s: float = 60.0) -> list[str]:
    fences = [one.fence for one in claimed]
    renewed = await world.database.write(conversations.renew, fences, lease_s)
    return [fence.conversation_id for fence in renewed.lost]


async def is_work_waiting(world: World) -> bool:
    return await world.database.read(conversations.soonest) == 0


async def test_without_a_wish_there_is_nothing_to_claim(world: World) -> None:
    await world.hears()
    assert not await is_work_waiting(world)
    assert await world.claims() is None


async def test_a_conversation_is_claimed_by_one(world: World) -> None:
    await world.says()
    assert await is_work_waiting(world)
    claimed = await world.claims("w1")
    assert claimed is not None
    assert claimed.thread == world.thread
    assert await world.claims("w2") is None
    assert not await is_work_waiting(world)


async def test_every_claim_raises_the_token(world: World) -> None:
    await world.says()
    first = await world.claimed("w1")
    await world.loses_its_worker()
    second = await world.claimed("w2")
    assert second.fence.token == first.fence.token + 1


async def test_who_has_waited_longest_goes_first(world: World) -> None:
    other = World(world.database, Thread("slack", "T1", "C1", "9"))
    await world.says()
    await other.stores(other.message(key="other"))
    await other.decides((await world.rows(t.inbox, key="other"))[0].seq)
    await world.change(t.inbox, {"key": "other"}, received_at=1.0)
    claimed = await world.claimed()
    assert claimed.fence.conversation_id == other.id


async def test_a_queued_message_alone_is_claimed_too(world: World) -> None:
    turn = await world.begins()
    await world.queues()
    await world.settles(turn, bookings=[booking()])
    assert await world.claims() is not None


async def test_a_claim_says_how_long_the_newest_wish_has_waited(world: World) -> None:
    await world.says()
    await world.change(t.inbox, {}, received_at=await world.now() - 100)
    claimed = await world.claimed()
    assert 99 < claimed.waited_s < 110


async def test_what_is_given_back_unused_can_be_claimed_at_once(world: World) -> None:
    await world.says()
    await release(world, await world.claimed())
    assert await world.claims("w2") is not None


async def test_a_lease_is_renewed_while_it_is_held(world: World) -> None:
    await world.says()
    claimed = await world.claimed()
    assert await renew(world, claimed, lease_s=500) == []
    assert (await world.conversation()).lease_expires > await world.now() + 400


async def test_a_lease_that_has_moved_on_is_reported_and_not_renewed(world: World) -> None:
    await world.says()
    old = await world.claimed("w1")
    await world.loses_its_worker()
    await world.claimed("w2")
    before = (await world.conversation()).lease_expires
    assert await renew(world, old, lease_s=500) == [world.id]
    assert (await world.conversation()).lease_expires == before


async def test_a_renewal_that_comes_after_the_settle_holds_nobody_up(world: World) -> None:
    await world.says()
    claimed = await world.claimed()
    started = await world.starts_on(claimed)
    await world.says("and search?", "Ben", marker="later")
    await world.settles(started, bookings=[booking()])
    assert await renew(world, claimed) == []
    assert await world.claims("w2") is not None


async def test_when_the_one_process_starts_all_leases_have_ended(world: World) -> None:
    await world.begins()
    await world.database.write(conversations.end_all_leases)
    assert (await world.conversation()).lease_expires == 0


async def test_while_the_thread_is_not_quiet_nothing_is_claimed_and_it_says_for_how_long(
    world: World,
) -> None:
    assert await world.database.read(conversations.soonest) is None
    turn = await world.begins()
    await world.says("look", "Ben")
    await world.cut(turn, Signal.STEER)
    await world.change(t.conversations, {"id": world.id}, not_before=await world.now() + 5)
    assert await world.claims() is None
    soonest = await world.database.read(conversations.soonest)
    assert soonest is not None
    assert 4 < soonest <= 5


# --- what lay too long ----------------------------------------------------------------------------------


async def test_work_that_lay_too_long_is_set_aside_and_the_thread_is_told(world: World) -> None:
    seq = await world.says()
    await world.change(t.inbox, {}, received_at=await world.now() - 7200)
    await world.database.write(conversations.set_aside, (await world.claimed()).fence)
    assert await world.fate(seq) == "context"
    assert await world.claims() is None
    [told] = await world.posts("expired")
    assert "2 h" in told
    assert "Mention me" in told


async def test_a_turn_to_resume_that_lay_too_long_leaves_no_batch_open(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.loses_its_worker()
    await world.reaps()
    await world.database.write(conversations.set_aside, (await world.claimed()).fence)
    assert {row.closed for row in await world.rows(t.calls)} == {True}
    assert (await world.conversation()).resume_turn is None


async def test_an_empty_database_says_so(world: World) -> None:
    assert await world.database.read(conversations.is_empty)
    await world.hears()
    assert not await world.database.read(conversations.is_empty)


# --- who goes first -----------------------------------------------------------------------------------------


async def alerted(world: World, thread: str, *, ago_s: float) -> World:
    """Another thread, in which a machine asked for an analysis so long ago."""
    other = World(world.database, Thread("slack", "T1", "C1", thread))
    [stored] = await other.stores(other.message(key=thread, source=Source.ALERT, author_id="monitor"))
    assert stored.seq is not None
    await other.decides(stored.seq, role=AuthorRole.SYSTEM)
    await world.change(t.inbox, {"key": thread}, received_at=await world.now() - ago_s)
    return other


async def test_people_go_before_what_a_machine_asked_for_earlier(world: World) -> None:
    await alerted(world, "alert", ago_s=HEAD_START_S / 2)
    await world.says()
    assert (await world.claimed()).fence.conversation_id == world.id


async def test_a_machine_that_has_waited_too_long_goes_before_people_who_came_later(world: World) -> None:
    alert = await alerted(world, "alert", ago_s=HEAD_START_S * 2)
    await world.says()
    assert (await world.claimed()).fence.conversation_id == alert.id


async def test_several_are_claimed_at_once_in_their_order_and_not_more_than_asked_for(world: World) -> None:
    alerts = [await alerted(world, f"alert {age}", ago_s=age) for age in (10, 30, 20)]
    claimed = await world.database.write(conversations.claim, "w1", 60.0, 2)
    assert {one.fence.conversation_id for one in claimed} == {alerts[1].id, alerts[2].id}
    [last] = await world.database.write(conversations.claim, "w2", 60.0, 5)
    assert last.fence.conversation_id == alerts[0].id


async def test_two_workers_that_claim_at_once_never_get_the_same(world: World) -> None:
    for number in range(12):
        await alerted(world, f"alert {number}", ago_s=60 + number)
    both = await asyncio.gather(
        *(world.database.write(conversations.claim, worker, 60.0, 3) for worker in ("w1", "w2", "w1", "w2"))
    )
    ids = [claimed.fence.conversation_id for some in both for claimed in some]
    assert len(ids) == len(set(ids)) == 12


# --- giving up ----------------------------------------------------------------------------------------------


async def test_a_worker_lets_go_of_what_it_does_not_work_on_and_of_nothing_else(world: World) -> None:
    await world.begins()
    other = await alerted(world, "alert", ago_s=60)
    kept = await world.claimed("w1")
    assert kept.fence.conversation_id == other.id
    assert await world.database.write(conversations.let_go, "w1", [other.id]) == 1
    assert (await world.conversation()).lease_expires == 0
    assert (await other.conversation()).lease_expires > await world.now()
    assert await world.database.write(conversations.let_go, "w2", []) == 0

"""Nothing is begun outside without a lease, whatever the database says or does not say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.flow.leases import Lease, Leases, clock_s
from storage import tables as t
from storage.engine import Database
from storage.errors import Fenced
from storage.fence import Fence
from tests.storage.world import World

LEASE_S = 0.6


@asynccontextmanager
async def kept(leases: Leases) -> AsyncIterator[None]:
    """While the leases are kept."""
    tasks = [asyncio.create_task(leases.renew()), asyncio.create_task(leases.watch())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def claimed(world: World, lease_s: float = LEASE_S) -> Fence:
    await world.says()
    one = await world.claims("w1", lease_s)
    assert one is not None
    return one.fence


async def test_a_lease_that_is_renewed_goes_on(database: Database) -> None:
    world, lost = World(database), list[Fence]()
    leases = Leases(database, LEASE_S, lost.append)
    async with kept(leases):
        lease = leases.hold(await claimed(world), clock_s())
        await asyncio.sleep(2 * LEASE_S)
        lease.require()
        assert lost == []
        assert (await world.conversation()).lease_expires > await world.now()


async def test_a_lease_ends_here_before_it_ends_in_the_database(database: Database) -> None:
    world = World(database)
    lease = Leases(database, LEASE_S, lambda _: None).hold(await claimed(world), clock_s())
    async with asyncio.timeout(5):
        while not lease.is_over:
            await asyncio.sleep(0.01)
    assert (await world.conversation()).lease_expires > await world.now()
    with pytest.raises(Fenced):
        lease.require()


async def test_a_lease_counts_from_when_it_was_asked_for_and_not_from_the_answer(database: Database) -> None:
    assert Leases(database, 8.0, lambda _: None).hold(Fence("c", 1), clock_s() - 10).is_over


async def test_what_is_taken_over_is_lost_once(database: Database) -> None:
    world, lost = World(database), list[Fence]()
    leases = Leases(database, LEASE_S, lost.append)
    fence = await claimed(world)
    lease = leases.hold(fence, clock_s())
    await world.loses_its_worker()
    assert await world.claims("w2", 60.0) is not None
    async with kept(leases):
        await asyncio.sleep(2 * LEASE_S)
    assert lost == [fence]
    assert lease.is_over


async def test_while_the_database_hangs_work_is_given_up_in_time(shared: Database) -> None:
    """The renewal waits for a lock that somebody holds; the lease ends meanwhile."""
    world, lost = World(shared), list[Fence]()
    leases = Leases(shared, LEASE_S, lost.append)
    fence = await claimed(world)
    locked, done = asyncio.Event(), asyncio.Event()

    async def hold(tx: object) -> None:
        await tx.execute(t.conversations.select().with_for_update())  # type: ignore[attr-defined]
        locked.set()
        await done.wait()

    holding = asyncio.create_task(shared.write(hold))
    await locked.wait()
    async with kept(leases):
        lease = leases.hold(fence, clock_s())
        async with asyncio.timeout(2 * LEASE_S):
            while not lost:
                await asyncio.sleep(0.01)
        assert lease.is_over
        done.set()
        with contextlib.suppress(Exception):
            await holding


def test_a_lease_of_nobody_is_never_over() -> None:
    assert not Lease("c").is_over


async def test_a_turn_that_writes_all_the_time_keeps_its_lease(shared: Database) -> None:
    """Its own transactions hold the row that the renewal needs."""
    world, lost = World(shared), list[Fence]()
    leases = Leases(shared, LEASE_S, lost.append)
    fence = await claimed(world)

    async def write(tx: object) -> None:
        await tx.execute(t.conversations.select().with_for_update())  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)

    async def write_for_ever() -> None:
        while True:
            await shared.write(write)

    writing = asyncio.create_task(write_for_ever())
    async with kept(leases):
        lease = leases.hold(fence, clock_s())
        await asyncio.sleep(4 * LEASE_S)
        lease.require()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert lost == []

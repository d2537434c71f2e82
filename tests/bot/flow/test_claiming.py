"""Of several processes one speaks about a thing, and begins no call that could outlive its claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.flow import claiming
from bot.flow.claiming import ClaimLapsed, Claims
from storage import tables as t
from storage.engine import Database
from tests.storage.world import World

CARD = "card:a"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "CLAIM_S", 1.0)
    monkeypatch.setattr(claiming, "RENEW_EVERY_S", 0.1)
    monkeypatch.setattr(claiming, "LONGEST_CALL_S", 0.4)


@asynccontextmanager
async def kept(claims: Claims) -> AsyncIterator[None]:
    """While the claims are kept."""
    task = asyncio.create_task(claims.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def is_held(claims: Claims) -> bool:
    """Whether a call may begin."""
    try:
        claims.require(CARD)
    except ClaimLapsed:
        return False
    return True


async def test_what_one_process_holds_another_does_not_get_until_it_is_given_back(shared: Database) -> None:
    one, other = Claims(shared, "p1"), Claims(shared, "p2")
    async with kept(one):
        assert await one.take([CARD]) == {CARD}
        assert await other.take([CARD]) == set()
        one.require(CARD)
        with pytest.raises(ClaimLapsed):
            other.require(CARD)
        one.give_back(CARD)
        async with asyncio.timeout(2):
            while not await other.take([CARD]):
                await asyncio.sleep(0.01)
        with pytest.raises(ClaimLapsed):
            one.require(CARD)


async def test_a_claim_is_renewed_while_it_is_held(shared: Database) -> None:
    one, other = Claims(shared, "p1"), Claims(shared, "p2")
    async with kept(one):
        await one.take([CARD])
        await asyncio.sleep(1.5)
        one.require(CARD)
        assert await other.take([CARD]) == set()


async def test_a_claim_that_is_not_renewed_ends_a_calls_time_before_others_may_have_it(
    shared: Database,
) -> None:
    one, other = Claims(shared, "p1"), Claims(shared, "p2")
    await one.take([CARD])
    await asyncio.sleep(0.7)
    with pytest.raises(ClaimLapsed):
        one.require(CARD)
    assert await other.take([CARD]) == set()
    await asyncio.sleep(0.4)
    assert await other.take([CARD]) == {CARD}


async def test_a_claim_that_went_to_another_process_is_known_to_be_gone(shared: Database) -> None:
    world, one = World(shared), Claims(shared, "p1")
    async with kept(one):
        await one.take([CARD])
        await world.change(t.claims, {}, owner="p2")
        async with asyncio.timeout(2):
            while is_held(one):
                await asyncio.sleep(0.01)


async def test_what_is_taken_again_before_it_was_given_back_stays(shared: Database) -> None:
    one, other = Claims(shared, "p1"), Claims(shared, "p2")
    await one.take([CARD])
    one.give_back(CARD)
    await one.take([CARD])
    async with kept(one):
        await asyncio.sleep(0.1)
        assert await other.take([CARD]) == set()


async def test_at_its_end_a_process_gives_everything_back(shared: Database) -> None:
    one, other = Claims(shared, "p1"), Claims(shared, "p2")
    await one.take([CARD, "card:b"])
    await one.give_back_all()
    assert await other.take([CARD, "card:b"]) == {CARD, "card:b"}


async def test_the_one_process_of_an_embedded_database_holds_everything(database: Database) -> None:
    one = Claims(database, "p1")
    assert await one.take([CARD]) == {CARD}
    one.require("anything")
    assert await World(database).rows(t.claims) == []

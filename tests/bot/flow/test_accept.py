"""Whatever comes in is stored before `accept` returns, and each learns of its own fate only."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from bot.flow.accept import LARGEST_BATCH, Acceptor
from bot.flow.bells import Bells, Topic
from core.arrivals import Arrival, Deletion, Edit, Source, Thread
from storage import tables as t
from storage.engine import Database
from tests.storage.world import THREAD, World


class Door:
    """An acceptor on a real database, and what came of it."""

    def __init__(self, database: Database) -> None:
        self.world = World(database)
        self.bells = Bells()
        self.lost: list[Arrival] = []
        self.acceptor = Acceptor(database, self.bells, self.clean, self.lost.append)
        self.begun = 0
        event.listen(database._writer.sync_engine, "begin", self._count)

    def _count(self, _: object) -> None:
        self.begun += 1

    @staticmethod
    def clean(text: str) -> str:
        if text == "breaks the cleaning":
            raise ZeroDivisionError
        return text.replace("hunter2", "[secret]")

    async def texts(self) -> list[str]:
        return [row.text for row in await self.world.rows(t.inbox)]


@pytest.fixture
def door(database: Database) -> Door:
    return Door(database)


async def test_a_message_is_durable_when_accept_returns_and_the_decider_is_woken(door: Door) -> None:
    await door.acceptor.accept(door.world.message("why?"))
    assert await door.texts() == ["why?"]
    assert await door.bells.of(Topic.DECISIONS).wait(0.1)


async def test_many_at_once_are_stored_in_a_few_transactions_in_their_order(door: Door) -> None:
    count = LARGEST_BATCH + 20
    messages = [door.world.message(f"message {number}") for number in range(count)]
    await asyncio.gather(*(door.acceptor.accept(message) for message in messages))
    assert await door.texts() == [f"message {number}" for number in range(count)]
    assert door.begun <= 3


async def test_what_comes_while_others_are_stored_is_stored_too(door: Door) -> None:
    first = asyncio.create_task(door.acceptor.accept(door.world.message("first")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(door.acceptor.accept(door.world.message("second")))
    await asyncio.gather(first, second)
    assert await door.texts() == ["first", "second"]


async def test_secrets_are_taken_out_before_anything_is_stored(door: Door) -> None:
    await door.acceptor.accept(door.world.message("the password is hunter2"))
    await door.acceptor.accept(Edit(THREAD, "slack:C1:1", "edit 1", "it is hunter2!"))
    assert await door.texts() == ["the password is [secret]", "it is [secret]!"]


async def test_one_that_cannot_be_stored_takes_no_other_with_it(door: Door) -> None:
    bad = door.world.message("bad", key=None)
    results = await asyncio.gather(
        door.acceptor.accept(door.world.message("before")),
        door.acceptor.accept(bad),
        door.acceptor.accept(door.world.message("after")),
        return_exceptions=True,
    )
    assert await door.texts() == ["before", "after"]
    assert results[0] is results[2] is None
    assert isinstance(results[1], SQLAlchemyError)


async def test_a_failure_without_words_is_told_as_well(door: Door) -> None:
    async with asyncio.timeout(5):
        with pytest.raises(ZeroDivisionError):
            await door.acceptor.accept(door.world.message("breaks the cleaning"))
    await door.acceptor.accept(door.world.message("after"))
    assert await door.texts() == ["after"]


async def test_whoever_stops_waiting_harms_nobody(door: Door) -> None:
    gone = asyncio.create_task(door.acceptor.accept(door.world.message("gone")))
    stays = asyncio.create_task(door.acceptor.accept(door.world.message("stays")))
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await door.texts() == ["gone", "stays"]


async def test_a_duplicate_is_accepted_and_stored_once(door: Door) -> None:
    message = door.world.message("why?")
    await asyncio.gather(door.acceptor.accept(message), door.acceptor.accept(message))
    assert await door.texts() == ["why?"]


async def test_a_deletion_of_what_nobody_knows_is_accepted(door: Door) -> None:
    await door.acceptor.accept(Deletion(Thread("slack", "T1", "C1", "9"), "slack:C1:9"))
    assert await door.texts() == []


async def test_a_button_of_an_unknown_turn_is_handed_on(door: Door) -> None:
    click = door.world.message("", source=Source.STOP_REQUEST, stops_turn="turn_unknown", may_open=False)
    await door.acceptor.accept(click)
    assert door.lost == [click]
    assert await door.texts() == []

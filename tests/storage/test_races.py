"""Two connections race for every fenced statement: whoever comes late writes nothing.

Each race is run both ways round. In one the takeover (or the decision) has done its work and not committed
yet when the worker writes; in the other the worker has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import select

from core import settle
from core.arrivals import AuthorRole, Thread
from core.history import Call, Text, assistant
from core.signals import Held, Signal
from storage import conversations, decisions, inbox, settlements, steps, turns
from storage import tables as t
from storage.engine import Database
from storage.errors import Fenced, Signalled
from storage.turns import StartedTurn
from tests.storage.world import ANSWER, POLICY, READ, WRITE, World, booking, ok, plan

Write = Callable[[Database], Any]


class Race:
    """A turn with one call under way, a worker that may be too late, and a second connection."""

    def __init__(self, world: World, other: Database, turn: StartedTurn) -> None:
        self.world, self.other, self.turn = world, other, turn

    async def held(self, write: Callable[[Any], Any], entered: asyncio.Event, go: asyncio.Event) -> Any:
        """A transaction on the other connection that has done its work and waits with its commit."""

        async def paused(tx: Any) -> Any:
            result = await write(tx)
            entered.set()
            await go.wait()
            return result

        return await self.other.write(paused)

    async def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything in every table but the fence itself."""

        async def read(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
            tables = [table for table in t.metadata.sorted_tables if table is not t.conversations]
            return {table.name: [tuple(row) for row in await tx.execute(select(table))] for table in tables}

        return await self.world.database.read(read)


def call_message() -> Any:
    return assistant(Text("I look again."), Call("again", "logs", {"query": "again"}))


FENCED: Mapping[str, Callable[[StartedTurn], tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]] = {
    "begin": lambda turn: (steps.begin, (turn.fence, "write"), {}),
    "result": lambda turn: (steps.record_result, (turn.fence, "read", ok()), {}),
    "close": lambda turn: (steps.close, (turn.fence, None), {}),
    "close with a stamp": lambda turn: (steps.close, (turn.fence, Held(Signal.STEER, "Ben")), {}),
    "commit": lambda turn: (
        steps.commit,
        (turn.fence, call_message(), [plan("again")], [booking()]),
        {"seen": turn.seen, "past_steers": False},
    ),
    "say": lambda turn: (steps.say, (turn.fence, "thinks", [booking()]), {}),
    "settle": lambda turn: (
        settlements.settle_turn,
        (turn.fence, "w1", settle.completed(ANSWER)),
        {"seen": turn.seen},
    ),
    "settle a cut": lambda turn: (
        settlements.settle_turn,
        (turn.fence, "w1", settle.cut(Held(Signal.DRAIN, "shutdown"))),
        {"seen": turn.seen},
    ),
    "release": lambda turn: (conversations.release, (turn.fence,), {}),
    "set aside": lambda turn: (conversations.set_aside, (turn.fence,), {}),
    "start": lambda turn: (turns.start, (turn.fence, "w1", 0.0), {}),
}
"""Every write that shows a fence."""


@pytest.fixture
async def race(world: World, url: str) -> AsyncIterator[Race]:
    """Ana asked; the worker w1 has a batch of two calls under way."""
    turn = await world.begins()
    await world.commits(turn, ("read", READ), ("write", WRITE), bookings=[booking()])
    other = await Database.open(url)
    yield Race(world, other, turn)
    await other.close()


@asynccontextmanager
async def under_way(race: Race, write: Callable[[Any], Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """While the other connection's transaction is done and not committed; it commits at the end."""
    entered, go = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(race.held(write, entered, go))
    await entered.wait()
    try:
        yield task
    finally:
        go.set()
        await asyncio.wait([task])


def taking_over(race: Race) -> Callable[[Any], Any]:
    return lambda tx: settlements.settle_dead_turn(tx, race.world.id, "w2", 3600.0)


@pytest.mark.parametrize("name", FENCED)
async def test_who_comes_while_a_takeover_is_under_way_writes_nothing(race: Race, name: str) -> None:
    await race.world.loses_its_worker()
    function, args, named = FENCED[name](race.turn)
    async with under_way(race, taking_over(race)) as takeover:
        late = asyncio.create_task(race.world.database.write(function, *args, **named))
        await asyncio.sleep(0.05)
        assert not late.done()
    assert takeover.result() is not None
    after = await race.rows()
    with pytest.raises(Fenced):
        await late
    assert await race.rows() == after


@pytest.mark.parametrize("name", sorted(set(FENCED) - {"start"}))
async def test_a_takeover_that_comes_while_the_worker_writes_sees_all_that_it_wrote(
    race: Race, name: str
) -> None:
    await race.world.loses_its_worker()
    function, args, named = FENCED[name](race.turn)
    async with under_way(race, lambda tx: function(tx, *args, **named)) as writing:
        takeover = asyncio.create_task(race.world.reaps())
        await asyncio.sleep(0.05)
        assert not takeover.done()
    assert writing.exception() is None
    ending = await takeover
    settled = await race.world.rows(t.settlements)
    assert len(settled) <= 1  # one record, whoever wrote it
    if name.startswith("settle"):
        assert ending is None
    elif name == "close with a stamp":
        assert [row.reason for row in settled] == ["steered"]


async def test_two_takeovers_at_once_settle_once(race: Race) -> None:
    await race.world.loses_its_worker()
    async with under_way(race, taking_over(race)) as first:
        second = asyncio.create_task(race.world.reaps("w3"))
        await asyncio.sleep(0.05)
    assert first.result() is not None
    assert await second is None
    assert len(await race.world.rows(t.settlements)) == 1


async def test_a_takeover_that_waits_for_a_renewal_takes_nothing_over(race: Race) -> None:
    await race.world.loses_its_worker()
    async with under_way(race, lambda tx: conversations.renew(tx, [race.turn.fence], 60.0)):
        takeover = asyncio.create_task(race.world.reaps())
        await asyncio.sleep(0.05)
    assert await takeover is None


async def test_a_renewal_waits_for_no_transaction_and_renews_the_others(race: Race) -> None:
    other = World(race.world.database, Thread("slack", "T1", "C1", "other"))
    await other.says(key="other")
    turn = await other.starts()
    fences = [race.turn.fence, turn.fence]
    async with under_way(race, lambda tx: steps.say(tx, race.turn.fence, "thinks")):
        renewal = asyncio.create_task(race.world.database.write(conversations.renew, fences, 60.0))
        if not race.world.database.is_sqlite:  # where one writes at a time
            async with asyncio.timeout(2):
                renewed = await renewal
            assert renewed.kept == {turn.fence}
            assert renewed.lost == set()
    await renewal
    assert (await race.world.database.write(conversations.renew, fences, 60.0)).kept == set(fences)


async def test_a_renewal_after_a_takeover_learns_that_it_is_lost(race: Race) -> None:
    await race.world.loses_its_worker()
    await race.world.reaps()
    renewed = await race.world.database.write(conversations.renew, [race.turn.fence], 60.0)
    assert renewed.lost == {race.turn.fence}


# --- decisions ----------------------------------------------------------------------------------------------


def deciding(race: Race, seq: int) -> Callable[[Any], Any]:
    return lambda tx: decisions.decide(tx, seq, POLICY, role=AuthorRole.MEMBER, author_name="Ben B.")


OF_ITS_OWN_ACCORD = ["commit", "settle"]
"""What a steer that was decided first must stop."""


async def a_steer_after_the_batch(race: Race) -> int:
    """The batch is closed, and Ben has written; nothing is decided about it yet."""
    await race.world.returns(race.turn, "read")
    await race.world.marks_started(race.turn, "write")
    await race.world.returns(race.turn, "write")
    await race.world.closes(race.turn)
    return await race.world.hears("look at the deploy", "Ben")


@pytest.mark.parametrize("name", OF_ITS_OWN_ACCORD)
async def test_a_steer_that_is_decided_first_wins(race: Race, name: str) -> None:
    steer = await a_steer_after_the_batch(race)
    function, args, named = FENCED[name](race.turn)
    async with under_way(race, deciding(race, steer)):
        late = asyncio.create_task(race.world.database.write(function, *args, **named))
        await asyncio.sleep(0.05)
        assert not late.done()
    with pytest.raises(Signalled):
        await late


@pytest.mark.parametrize("name", OF_ITS_OWN_ACCORD)
async def test_a_steer_that_is_decided_after_the_end_starts_the_next_turn(race: Race, name: str) -> None:
    steer = await a_steer_after_the_batch(race)
    function, args, named = FENCED[name](race.turn)
    async with under_way(race, lambda tx: function(tx, *args, **named)) as writing:
        decided = asyncio.create_task(race.world.decides(steer))
        await asyncio.sleep(0.05)
        assert not decided.done()
    assert writing.exception() is None
    assert await decided == ("steer" if name == "commit" else "start")
    if name == "settle":
        assert await race.world.claims("w2") is not None


async def test_of_two_decisions_about_one_message_the_first_stands(race: Race) -> None:
    seq = await race.world.hears("look", "Ben")
    async with under_way(race, deciding(race, seq)) as first:
        second = asyncio.create_task(race.world.decides(seq))
        await asyncio.sleep(0.05)
    assert first.result().effect == "steer"
    assert await second is None


async def test_a_message_that_is_stored_twice_at_once_is_there_once(race: Race) -> None:
    message = race.world.message("why?", key="same")
    async with under_way(race, lambda tx: inbox.ingest(tx, [message])) as first:
        second = asyncio.create_task(race.world.stores(message))
        await asyncio.sleep(0.05)
    stored = [first.result()[0].seq, (await second)[0].seq]
    assert sorted(seq is None for seq in stored) == [False, True]
    assert len(await race.world.rows(t.inbox, key="same")) == 1

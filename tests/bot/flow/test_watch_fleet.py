"""The gauges of the fleet are as fresh as somebody asks for, and a scrape never waits long for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from bot.flow import watch_fleet
from bot.flow.watch_fleet import FleetWatcher
from bot.measures import Measures
from storage import schema
from storage import tables as t
from storage.engine import Database
from tests.servers.postgres import PostgresServer
from tests.storage.fresh import driven
from tests.storage.world import World

AGE = "watchkeeper_oldest_unsettled_turn_seconds"


async def test_a_scrape_shows_what_the_records_say(database: Database) -> None:
    world, measures = World(database), Measures()
    turn = await world.begins()
    await world.change(t.turns, {"id": turn.fence.turn_id}, started_at=await world.now() - 40)
    await FleetWatcher(database, measures).refresh()
    assert measures.registry.get_sample_value(AGE) == pytest.approx(40, abs=5)
    assert measures.registry.get_sample_value("watchkeeper_database_up") == 1


async def test_scrapes_that_follow_each_other_closely_read_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, measures = World(database), Measures()
    watcher = FleetWatcher(database, measures)
    await watcher.refresh()
    await world.begins()
    await watcher.refresh()
    assert measures.registry.get_sample_value(AGE) == 0
    monkeypatch.setattr(watch_fleet, "FRESH_FOR_S", 0.0)
    await watcher.refresh()
    assert measures.registry.get_sample_value(AGE) != 0


async def test_a_database_that_does_not_answer_holds_up_one_scrape_and_not_for_long(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_fleet, "PATIENCE_S", 0.3)
    monkeypatch.setattr(watch_fleet, "FRESH_FOR_S", 0.0)
    measures, answers = Measures(), asyncio.Event()
    watcher = FleetWatcher(database, measures)
    await watcher.refresh()
    waiting = await all_readers_are_taken(database, answers)
    assert await seconds_of(watcher.refresh) < 2
    assert measures.registry.get_sample_value(AGE) is None
    assert measures.registry.get_sample_value("watchkeeper_database_up") == 0
    assert await seconds_of(watcher.refresh) < 0.2
    answers.set()
    await asyncio.gather(*waiting)
    async with asyncio.timeout(5):
        while measures.registry.get_sample_value("watchkeeper_database_up") == 0:
            await asyncio.sleep(0.01)
    await watcher.close()


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["freeze", "stop"])
async def test_a_scrape_is_quick_while_postgres_is_away_and_right_again_once_it_is_back(
    own_server: PostgresServer, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_fleet, "PATIENCE_S", 0.5)
    monkeypatch.setattr(watch_fleet, "FRESH_FOR_S", 0.0)
    measures = Measures()
    database = await Database.open(driven(own_server.url("fleet")))
    watcher = FleetWatcher(database, measures)
    await watcher.refresh()
    assert measures.registry.get_sample_value("watchkeeper_database_up") == 1
    await asyncio.to_thread(own_server.freeze if trouble == "freeze" else own_server.stop)
    for limit_s in (2.0, 0.3, 0.3):
        assert await seconds_of(watcher.refresh) < limit_s
        assert measures.registry.get_sample_value("watchkeeper_database_up") == 0
        assert measures.registry.get_sample_value(AGE) is None
    await asyncio.to_thread(own_server.thaw if trouble == "freeze" else own_server.start)
    async with asyncio.timeout(20):
        while measures.registry.get_sample_value("watchkeeper_database_up") == 0:
            await asyncio.sleep(0.2)
            await watcher.refresh()
    assert measures.registry.get_sample_value(AGE) == 0
    await watcher.close()
    await database.close()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A Postgres of this test's own, with a migrated database in it."""
    server = PostgresServer().start()
    asyncio.run(server.create("fleet"))
    asyncio.run(schema.upgrade(driven(server.url("fleet"))))
    yield server
    server.close()


async def test_records_that_cannot_be_read_take_the_gauges_away(database: Database) -> None:
    measures = Measures()

    async def break_outbox(tx: Any) -> None:
        await tx.execute(text("alter table outbox rename to no_outbox"))

    await database.write(break_outbox)
    await FleetWatcher(database, measures).refresh()
    assert measures.registry.get_sample_value("watchkeeper_database_up") == 0


async def test_a_watcher_that_is_closed_leaves_nothing_behind(database: Database) -> None:
    answers = asyncio.Event()
    waiting = await all_readers_are_taken(database, answers)
    watcher = FleetWatcher(database, Measures())
    scrape = asyncio.create_task(watcher.refresh())
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await watcher.close()
        await scrape
    answers.set()
    await asyncio.gather(*waiting)


async def all_readers_are_taken(database: Database, answers: asyncio.Event) -> list[asyncio.Task[None]]:
    """As many reads as there are connections, none of which ends before that event."""
    pool: Any = database._reader.pool
    wanted = pool.size() + pool._max_overflow
    taken = asyncio.Semaphore(0)

    async def read(_: Any) -> None:
        taken.release()
        await answers.wait()

    waiting = [asyncio.create_task(database.read(read)) for _ in range(wanted)]
    for _ in range(wanted):
        await taken.acquire()
    return waiting


async def seconds_of(work: Callable[[], Awaitable[None]]) -> float:
    began = asyncio.get_running_loop().time()
    await work()
    return asyncio.get_running_loop().time() - began

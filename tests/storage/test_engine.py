"""Transactions come to their end, lose nothing to each other, and are undone whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError

from storage import tables as t
from storage.engine import Database, db_now
from storage.errors import DatabaseUnusable
from tests.storage.world import World


async def add_one(tx: Any, entered: asyncio.Event | None = None, pause_s: float = 0.0) -> None:
    """Read, wait, write: what loses updates when two do it at once."""
    value = (await tx.execute(select(t.conversations.c.next_call).with_for_update())).scalar_one()
    if entered is not None:
        entered.set()
    await asyncio.sleep(pause_s)
    await tx.execute(update(t.conversations).values(next_call=value + 1))


async def test_a_transaction_of_a_caller_that_was_cancelled_is_still_committed(world: World) -> None:
    await world.hears()
    entered = asyncio.Event()
    task = asyncio.create_task(world.database.write(add_one, entered, 0.05))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await world.conversation()).next_call == 1  # not committed yet, and nobody waits for it
    async with asyncio.timeout(5):
        while (await world.conversation()).next_call != 2:
            await asyncio.sleep(0.01)


async def test_closing_waits_for_what_is_under_way(world: World, url: str) -> None:
    await world.hears()
    entered = asyncio.Event()
    task = asyncio.create_task(world.database.write(add_one, entered, 0.05))
    await entered.wait()
    await world.database.close()
    await task
    again = await Database.open(url)
    assert (await World(again).conversation()).next_call == 2
    await again.close()


async def test_writers_lose_nothing_to_each_other(world: World) -> None:
    await world.hears()
    await asyncio.gather(*(world.database.write(add_one, None, 0.001) for _ in range(20)))
    assert (await world.conversation()).next_call == 21


async def test_two_programs_wait_for_each_other_and_lose_nothing(world: World, url: str) -> None:
    await world.hears()
    other = await Database.open(url)
    entered = 0

    async def counted(tx: Any) -> None:
        nonlocal entered
        entered += 1
        await add_one(tx, None, 0.001)

    await asyncio.gather(*(one.write(counted) for _ in range(5) for one in (world.database, other)))
    assert (await world.conversation()).next_call == 11
    assert entered == 10  # each waited for its turn; none failed and had to be repeated
    await other.close()


async def test_what_a_transaction_raises_undoes_it_whole(world: World) -> None:
    await world.hears()

    async def fail(tx: Any) -> None:
        await add_one(tx)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await world.database.write(fail)
    assert (await world.conversation()).next_call == 1


async def test_a_reader_does_not_wait_for_a_writer(world: World) -> None:
    await world.hears()
    entered = asyncio.Event()
    task = asyncio.create_task(world.database.write(add_one, entered, 0.2))
    await entered.wait()
    assert (await world.conversation()).next_call == 1
    assert not task.done()
    await task


async def test_reading_cannot_write(world: World) -> None:
    await world.hears()
    with pytest.raises(DBAPIError):
        await world.database.read(add_one)


async def test_the_databases_clock_moves_within_a_transaction(world: World) -> None:
    async def twice(tx: Any) -> float:
        first = (await tx.execute(select(db_now()))).scalar_one()
        await asyncio.sleep(0.02)
        return float((await tx.execute(select(db_now()))).scalar_one() - first)

    assert 0.01 < await world.database.write(twice) < 5


async def test_a_database_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(DatabaseUnusable, match="there is no database at") as refused:
        await Database.open(f"sqlite+aiosqlite:///{path}", read_only=True)
    assert "DATABASE_URL" in str(refused.value)
    assert not path.exists()


async def refusal(path: Path) -> str:
    """What is said of a file that cannot be opened."""
    with pytest.raises(DatabaseUnusable) as refused:
        await Database.open(f"sqlite+aiosqlite:///{path}")
    await asyncio.sleep(0.05)  # the driver's thread has a last word for this loop
    return str(refused.value)


async def test_a_database_that_cannot_be_opened_is_said_in_one_line_with_the_mend(tmp_path: Path) -> None:
    refused = await refusal(tmp_path / "no" / "folder.db")
    assert refused.startswith("DATABASE_URL: cannot open the database at ")
    assert "\n" not in refused


async def test_a_file_that_is_no_database_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be read as one" * 20)
    assert "\n" not in await refusal(tmp_path / "text.db")

"""SQLite's writes share commits: each is undone alone, all are told what is durable, none waits for long."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.group_commit import MOST

Write = Callable[[AsyncConnection], Awaitable[int]]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database with one table of numbers."""
    opened = await Database.open(f"sqlite+aiosqlite:///{tmp_path / 'numbers.db'}")

    async def create(tx: AsyncConnection) -> None:
        await tx.execute(text("create table numbers (number integer primary key)"))

    await opened.write(create)
    yield opened
    await opened.close()


def put(number: int) -> Write:
    """A transaction that writes a number twice, so that half of it would show."""

    async def write(tx: AsyncConnection) -> int:
        await tx.execute(text("insert into numbers values (:number)"), {"number": number})
        await tx.execute(text("insert into numbers values (:number)"), {"number": -number})
        return number

    return write


def fail(number: int) -> Write:
    """A transaction that has written when it fails."""

    async def write(tx: AsyncConnection) -> int:
        await put(number)(tx)
        raise ValueError("no")

    return write


def stored(database: Database) -> set[int]:
    """What another connection sees."""
    with sqlite3.connect(str(database.url.database)) as reader:
        return {number for (number,) in reader.execute("select number from numbers")}


def count(database: Database, name: str) -> list[None]:
    """One entry for each of these events from now on."""
    seen: list[None] = []
    event.listen(database._writer.sync_engine, name, lambda *_: seen.append(None))
    return seen


async def test_many_that_wait_share_one_commit(database: Database) -> None:
    commits = count(database, "commit")
    assert await asyncio.gather(*(database.write(put(n)) for n in range(1, MOST + 1))) == [
        *range(1, MOST + 1)
    ]
    assert len(commits) == 1


async def test_a_group_is_bounded(database: Database) -> None:
    commits = count(database, "commit")
    await asyncio.gather(*(database.write(put(n)) for n in range(1, 3 * MOST + 1)))
    assert len(commits) == 3


async def test_one_that_fails_is_undone_alone_and_takes_nobody_with_it(database: Database) -> None:
    works = [put(1), fail(2), put(3), fail(4), put(5)]
    told = await asyncio.gather(*map(database.write, works), return_exceptions=True)
    assert [type(one) for one in told] == [int, ValueError, int, ValueError, int]
    assert stored(database) == {1, -1, 3, -3, 5, -5}


async def test_one_that_breaks_a_constraint_is_undone_alone(database: Database) -> None:
    told = await asyncio.gather(*map(database.write, [put(1), put(1), put(2)]), return_exceptions=True)
    assert [type(one).__name__ for one in told] == ["int", "IntegrityError", "int"]
    assert stored(database) == {1, -1, 2, -2}


async def test_each_sees_what_those_before_it_have_written(database: Database) -> None:
    seen: list[int] = []

    def look(number: int) -> Write:
        async def write(tx: AsyncConnection) -> int:
            await put(number)(tx)
            seen.append(
                (await tx.execute(text("select count(*) from numbers where number > 0"))).scalar_one()
            )
            return number

        return write

    await asyncio.gather(*(database.write(look(n)) for n in range(1, 6)))
    assert seen == [1, 2, 3, 4, 5]


async def test_what_comes_from_outside_goes_before_all_that_wait_and_waits_for_none_of_them(
    database: Database,
) -> None:
    order: list[str] = []
    entered = asyncio.Event()
    event.listen(database._writer.sync_engine, "commit", lambda _: order.append("commit"))

    async def note(tx: AsyncConnection, name: str, pause_s: float = 0.0) -> None:
        order.append(name)
        entered.set()
        await asyncio.sleep(pause_s)

    under_way = asyncio.create_task(database.write(note, "one", 0.05))
    await entered.wait()
    await asyncio.gather(
        under_way,
        database.write(note, "two"),
        database.write_first(note, "outside"),
        database.write(note, "three"),
    )
    assert order == ["one", "outside", "commit", "two", "three", "commit"]


@pytest.mark.parametrize("work", [put(1), fail(1)], ids=["one that succeeded", "one that failed"])
async def test_nobody_is_told_before_the_commit(database: Database, work: Write) -> None:
    told: list[object] = []
    stored_when_told: list[set[int]] = []

    async def ask(one: Write) -> None:
        told.extend(await asyncio.gather(database.write(one), return_exceptions=True))
        stored_when_told.append(stored(database))

    async def slow(tx: AsyncConnection) -> int:
        await put(2)(tx)
        await asyncio.sleep(0.02)
        assert not told
        return 2

    await asyncio.gather(ask(work), ask(slow))
    assert all({2, -2} <= seen for seen in stored_when_told)


async def test_where_the_commit_fails_all_fail_and_nothing_was_done(database: Database) -> None:
    async def refuse(tx: AsyncConnection) -> int:
        """Make the COMMIT fail: a deferred foreign key that points nowhere."""
        await tx.execute(text("create table few (id integer primary key)"))
        await tx.execute(
            text("create table bad (few integer references few (id) deferrable initially deferred)")
        )
        await tx.execute(text("insert into bad values (1)"))
        return 0

    told = await asyncio.gather(*map(database.write, [put(1), fail(2), refuse]), return_exceptions=True)
    assert [type(one).__name__ for one in told] == ["IntegrityError"] * 3
    assert stored(database) == set()
    assert await database.write(put(3)) == 3  # and the next one is as good as any


async def test_one_that_ends_the_whole_transaction_fails_all_and_nothing_was_done(database: Database) -> None:
    async def end(tx: AsyncConnection) -> int:
        """As a full disk does: https://www.sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction."""
        await tx.exec_driver_sql("ROLLBACK")
        raise ValueError("the disk is full")

    told = await asyncio.gather(*map(database.write, [put(1), end]), return_exceptions=True)
    assert all(isinstance(one, DBAPIError) for one in told)
    assert stored(database) == set()
    assert await database.write(put(3)) == 3


async def test_a_database_that_cannot_be_written_is_told_to_all_that_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.TRIES", 1)

    async def impatient(tx: AsyncConnection) -> None:
        await tx.exec_driver_sql("PRAGMA busy_timeout = 1")

    await database.write(impatient)
    with sqlite3.connect(str(database.url.database), isolation_level=None) as other:
        other.execute("begin immediate")
        told = await asyncio.gather(*map(database.write, [put(1), put(2)]), return_exceptions=True)
        other.execute("rollback")
    assert all("locked" in str(one) for one in told)
    assert await database.write(put(3)) == 3


WRITER = """
import asyncio, sys
from sqlalchemy import text
from storage.engine import Database

async def main(url):
    database = await Database.open(url)
    async def put(tx, number):
        await tx.execute(text("insert into numbers values (:number)"), {"number": number})
    async def write(first):
        for number in range(first, 1_000_000, 20):
            await database.write(put, number)
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()
    await asyncio.gather(*(write(first) for first in range(1, 21)))

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 40, 333])
async def test_what_was_told_is_there_after_kill_9(database: Database, after: int) -> None:
    url = database.url.render_as_string()
    with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = {int(writer.stdout.readline()) for _ in range(after)}
        writer.kill()
        told |= {int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")}
    assert len(told) >= after
    assert told <= stored(database)


def test_the_order_of_coming_is_kept(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        database = await Database.open(f"sqlite+aiosqlite:///{tmp_path / 'order.db'}")
        order: list[int] = []

        async def note(tx: AsyncConnection, number: int) -> None:
            order.append(number)

        await asyncio.gather(*(database.write(note, number) for number in range(3 * MOST)))
        await database.close()
        return order

    assert asyncio.run(run()) == [*range(3 * MOST)]

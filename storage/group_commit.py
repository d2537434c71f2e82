"""Who writes next where only one may: in order of coming, many to one COMMIT, since each waits for the disk.

Whoever sends us something waits for our acknowledgement, and gives up after seconds; our own work does not.
So what comes in from outside goes first, and its COMMIT waits for nothing else.

Rule: nobody is told anything before the COMMIT that everybody in the group shares, not even of a failure: it
may rest on what another one of them has written. Each has a savepoint of its own and is undone alone; where
the COMMIT fails, nothing of any of them was done, and all are told so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

MOST = 16
"""So many share one COMMIT at most: nobody waits longer than so many transactions before the own one."""


class GroupCommit:
    """Runs the transactions of one engine, one after the other."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._first: deque[_Member[Any]] = deque()
        self._others: deque[_Member[Any]] = deque()
        self._writing: asyncio.Task[None] | None = None

    async def run(self, work: Work[T], *, first: bool) -> T:
        """Run a transaction when its turn comes; returns, or raises what it raised, once that is durable."""
        member = _Member(work, first=first)
        (self._first if first else self._others).append(member)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all(), name="write in groups")
        return await member.told

    async def _write_all(self) -> None:
        try:
            while self._first or self._others:
                await self._write_group()
        finally:
            self._writing = None

    async def _write_group(self) -> None:
        group: list[_Member[Any]] = []
        try:
            async with self._engine.connect() as connection, connection.begin() as begun:
                while len(group) < MOST and (member := self._next()) is not None:
                    group.append(member)
                    await member.run(connection)
                    if member.first and not self._first:
                        break
                    await asyncio.sleep(0)  # the statements run in the event loop, which has other work too
                try:
                    await begun.commit()
                except BaseException:
                    await (
                        connection.invalidate()
                    )  # SQLite leaves the transaction open, and would begin no other
                    raise
        except BaseException as error:
            for member in group or self._all_waiting():  # it may not even have begun
                member.fail(error)
            if not isinstance(error, Exception):
                raise
        else:
            for member in group:
                member.tell()

    def _all_waiting(self) -> list[_Member[Any]]:
        waiting = [*self._first, *self._others]
        self._first.clear()
        self._others.clear()
        return waiting

    def _next(self) -> _Member[Any] | None:
        queue = self._first or self._others
        return queue.popleft() if queue else None


class _Member(Generic[T]):
    """One transaction of a group, and who waits for it."""

    def __init__(self, work: Work[T], *, first: bool) -> None:
        self.first = first
        self.told: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._work = work
        self._result: T | None = None
        self._error: Exception | None = None

    async def run(self, connection: AsyncConnection) -> None:
        """Run it behind a savepoint; only what undoes the whole group is raised."""
        await connection.exec_driver_sql("SAVEPOINT member")
        try:
            self._result = await self._work(connection)
        except Exception as error:  # noqa: BLE001  whoever waits for it raises it
            self._error = error
            await connection.exec_driver_sql("ROLLBACK TO member")
        await connection.exec_driver_sql("RELEASE member")

    def tell(self) -> None:
        """What came of it stands now."""
        if self._error is not None:
            self.fail(self._error)
        elif not self.told.done():
            self.told.set_result(cast(T, self._result))

    def fail(self, error: BaseException) -> None:
        """Nothing was done."""
        if self.told.done():
            return
        if isinstance(error, Exception):
            self.told.set_exception(error)
        else:
            self.told.cancel()

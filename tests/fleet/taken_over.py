"""What stands in the records of turns that others took over: the rows that nobody may write any more."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.tables import calls, settlements, transcript, turns
from tests.fleet.fleet import Fleet
from tests.fleet.laws import Row
from tests.fleet.member import Member

LATER = frozenset({"card_released_at", "answer_posted_at"})
"""Written by whoever shows it. What requests cost is booked by whoever made them, at any time."""


async def rows_of_taken_over(fleet: Fleet, victim: Member, struck_at: float) -> list[Row]:
    """The rows of the victim's turns that somebody else has settled since, and whose calls are closed."""
    database = await fleet.records()
    return await database.read(_taken_over, victim, struck_at)


async def rows_of(fleet: Fleet, found: Collection[str]) -> list[Row]:
    """The rows of these turns as they stand now."""
    database = await fleet.records()
    return await database.read(_rows, found)


async def _taken_over(tx: AsyncConnection, victim: Member, struck_at: float) -> list[Row]:
    statement = (
        select(turns.c.id, turns.c.worker, settlements.c.worker.label("settled_by"))
        .join(settlements, settlements.c.turn_id == turns.c.id)
        .where(settlements.c.settled_at > struck_at)
    )
    theirs = {
        row.id
        for row in (await tx.execute(statement)).all()
        if victim.is_worker(row.worker) and not victim.is_worker(row.settled_by)
    }
    unclosed = select(calls.c.turn_id).where(calls.c.closed.is_(False))
    theirs -= set((await tx.execute(unclosed)).scalars())
    return await _rows(tx, theirs)


async def _rows(tx: AsyncConnection, found: Collection[str]) -> list[Row]:
    rows = []
    for table, turn in (
        (turns, turns.c.id),
        (transcript, transcript.c.turn_id),
        (calls, calls.c.turn_id),
        (settlements, settlements.c.turn_id),
    ):
        for row in (await tx.execute(select(table).where(turn.in_(found)))).all():
            values = {name: value for name, value in row._mapping.items() if name not in LATER}
            key = ":".join(str(values[column.name]) for column in table.primary_key.columns)
            rows.append(Row(str(values.get("turn_id") or values["id"]), f"{table.name} {key}", str(values)))
    return sorted(rows)

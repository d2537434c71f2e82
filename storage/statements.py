"""Small statements that several transactions are built of."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, Column, Row, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import db_now


def new_id(prefix: str) -> str:
    """An id that nobody else has: `turn_9f…`."""
    return f"{prefix}_{secrets.token_hex(10)}"


async def now(tx: AsyncConnection) -> float:
    """The database's time, in seconds since the epoch."""
    return float((await tx.execute(select(db_now()))).scalar_one())


async def insert_once(tx: AsyncConnection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless one with the same unique key exists; whether it was inserted."""
    computed = {name: value for name, value in values.items() if isinstance(value, ClauseElement)}
    given = {name: value for name, value in values.items() if name not in computed}
    statement = _insert(tx, table).values(**computed).on_conflict_do_nothing()
    return (await tx.execute(statement, given)).rowcount == 1


async def insert_all_once(
    tx: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]], *returning: Column[Any]
) -> list[Row[Any]]:
    """Insert rows of the same columns unless their unique keys exist; returns this of those inserted."""
    if not rows:
        return []
    statement = _insert(tx, table).on_conflict_do_nothing().returning(*returning)
    return list((await tx.execute(statement, [dict(row) for row in rows])).all())


def _insert(tx: AsyncConnection, table: Table) -> postgresql.Insert | sqlite.Insert:
    insert = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    return insert(table)

"""Small statements that several transactions are built of."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table, select
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
    insert = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(**values).on_conflict_do_nothing()
    return (await tx.execute(statement)).rowcount == 1

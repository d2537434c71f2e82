"""What is done about a process that is not heard any more: its leases and claims end early."""

from __future__ import annotations

from sqlalchemy import text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.tables import claims, conversations

SILENT = text("select pg_try_advisory_xact_lock(hashtextextended(:owner, 0))")


async def end_leases_of(tx: AsyncConnection, owner: str) -> bool:
    """End the leases and claims of a process, unless it is heard after all; whether they were ended.

    Postgres only: the lock on its name, which only a process that does not live leaves free, is held here
    until all is written.
    """
    if not (await tx.execute(SILENT, {"owner": owner})).scalar():
        return False
    await tx.execute(
        update(conversations)
        .where(conversations.c.lease_owner == owner, conversations.c.lease_expires > 0)
        .values(lease_expires=0)
    )
    await tx.execute(update(claims).where(claims.c.owner == owner).values(until=0))
    return True

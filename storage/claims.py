"""Claims: which process may speak to the platform about one thing, a card or a thread, and until when.

The platform knows no fence. So of several processes one speaks about a thing at a time: it takes a claim,
renews it while it waits and speaks, and begins nothing that could outlive it. What a frozen process may still
say is the one call that it had begun; whoever finds its own claim gone afterwards has the thing shown anew.
The embedded database serves one process, to which everything is granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, or_, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import db_now
from storage.tables import claims

C = claims.c


async def take(tx: AsyncConnection, things: Sequence[str], owner: str, for_s: float) -> set[str]:
    """Claim these things, but for those that another process holds; returns what was granted."""
    if tx.dialect.name == "sqlite":
        return set(things)
    insert = postgresql.insert(claims)
    taking = insert.on_conflict_do_update(
        index_elements=[C.thing],
        set_={"owner": insert.excluded.owner, "until": insert.excluded.until},
        where=or_(C.until <= db_now(), C.owner == owner),
    ).returning(C.thing)
    rows = [{"thing": thing, "owner": owner, "until": await _until(tx, for_s)} for thing in sorted(things)]
    return set((await tx.execute(taking, rows)).scalars())


async def _until(tx: AsyncConnection, for_s: float) -> float:
    return float((await tx.execute(select(db_now() + for_s))).scalar_one())


async def renew(tx: AsyncConnection, things: Sequence[str], owner: str, for_s: float) -> set[str]:
    """Renew claims; returns those that are still held."""
    if tx.dialect.name == "sqlite":
        return set(things)
    renewing = (
        update(claims)
        .where(C.thing.in_(things), C.owner == owner)
        .values(until=db_now() + for_s)
        .returning(C.thing)
    )
    return set((await tx.execute(renewing)).scalars())


async def give_back(tx: AsyncConnection, things: Sequence[str], owner: str) -> None:
    """Give claims back."""
    if tx.dialect.name != "sqlite":
        await tx.execute(delete(claims).where(C.thing.in_(things), C.owner == owner))


async def still_holds(tx: AsyncConnection, thing: str, owner: str) -> bool:
    """Whether the claim is this process's, locked until the transaction ends."""
    if tx.dialect.name == "sqlite":
        return True
    statement = select(C.owner).where(C.thing == thing).with_for_update()
    return (await tx.execute(statement)).scalar() == owner


def held_by_others(thing: Any, owner: str) -> Any:
    """A condition: another process holds the claim on this thing (an expression) now."""
    return (
        select(C.thing)
        .where(C.thing == thing, C.owner != owner, C.until > db_now())
        .correlate_except(claims)
        .exists()
    )


async def forget_lapsed(tx: AsyncConnection, since_s: float) -> int:
    """Forget claims that lapsed so long ago."""
    return (await tx.execute(delete(claims).where(C.until < db_now() - since_s))).rowcount

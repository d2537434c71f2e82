"""What there is to do, in one query: what every process asks when no bell rings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, literal, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage import cards, conversations, inbox, outbox, receipts
from storage.engine import db_now
from storage.tables import conversations as conversation_rows
from storage.tables import settlements

LEFT_TO_OTHERS_S = 1.0
"""A message that came in elsewhere is decided there, unless it still is not after so long."""


@dataclass(frozen=True, slots=True)
class Agenda:
    """Seconds until something is due, 0 for now; None when there is nothing of the kind."""

    decisions: float | None
    work: float | None
    cards: float | None
    posts: float | None
    receipts: float | None
    dead_turns: bool
    late_cards: bool
    leases_elsewhere: bool
    silent_owners: tuple[str, ...]
    """Owners of leases or claims that are not heard any more (Postgres only)."""


# A process holds an advisory lock on its name for as long as its connection stands. The view only looks.
_SILENT = """(
    select string_agg(distinct owner, chr(10)) from (
        select lease_owner as owner from conversations where active_turn is not null and lease_expires > 0
        union select owner from claims where until > extract(epoch from clock_timestamp())
    ) as owners
    where hashtextextended(owner, 0) not in (
        select (classid::bigint << 32) | objid::bigint from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())
    )
)"""


def _statement(dialect: str) -> Select[Any]:
    c = conversation_rows.c
    running = select(c.id).where(c.active_turn.is_not(None))
    owner: Any = bindparam("owner")
    interval_s: Any = bindparam("card_interval_s")
    released_late = select(settlements.c.turn_id).where(
        settlements.c.card_released_at.is_(None),
        settlements.c.settled_at < db_now() - bindparam("card_grace_s"),
        cards.is_quiet_card_of(settlements.c.turn_id),
    )
    return select(
        inbox.undecided_for(LEFT_TO_OTHERS_S).label("decisions"),
        conversations.due_in().label("work"),
        cards.due_in(owner, interval_s).label("cards"),
        outbox.due_in(owner).label("posts"),
        receipts.due_in(owner).label("receipts"),
        running.where(c.lease_expires <= db_now()).exists().label("dead_turns"),
        released_late.exists().label("late_cards"),
        running.where(c.lease_owner != owner, c.lease_expires > db_now()).exists().label("leases_elsewhere"),
        (literal_column(_SILENT) if dialect == "postgresql" else literal(None)).label("silent_owners"),
    )


_STATEMENTS = {dialect: _statement(dialect) for dialect in ("sqlite", "postgresql")}


async def look(tx: AsyncConnection, owner: str, card_interval_s: float, card_grace_s: float) -> Agenda:
    """Look at everything once, as the process of this name."""
    given = {"owner": owner, "card_interval_s": card_interval_s, "card_grace_s": card_grace_s}
    row = (await tx.execute(_STATEMENTS[tx.dialect.name], given)).one()
    silent = row.silent_owners.split("\n") if row.silent_owners else []
    return Agenda(
        decisions=_seconds(row.decisions),
        work=_seconds(row.work),
        cards=_seconds(row.cards),
        posts=_seconds(row.posts),
        receipts=_seconds(row.receipts),
        dead_turns=bool(row.dead_turns),
        late_cards=bool(row.late_cards),
        leases_elsewhere=bool(row.leases_elsewhere),
        silent_owners=tuple(name for name in silent if name != owner),
    )


def _seconds(value: Any) -> float | None:
    return None if value is None else max(0.0, float(value))

"""What is measured from the records: the whole fleet in one cheap read, and how long people waited.

Every subquery of `fleet` reads what is open and no more, from the partial indexes over it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from core.policy import Effect
from storage.engine import db_now
from storage.tables import cards, conversations, inbox, outbox, settlements, tombstones, turns


@dataclass(frozen=True, slots=True)
class Fleet:
    """Ages in seconds by the database's clock, 0 where there is nothing that could be old."""

    outbox_age_s: float
    oldest_unsettled_turn_s: float
    unreleased_cards: int


_OPEN_SINCE = select(func.min(outbox.c.queued_at)).where(outbox.c.done_at.is_(None))
_RUNNING_SINCE = (
    select(func.min(turns.c.started_at))
    .join(conversations, conversations.c.active_turn == turns.c.id)
    .where(conversations.c.active_turn.is_not(None))
)
# A card that was handed on belongs to the next turn, and shows as live by right. No join: SQLite would begin
# it with all cards that there ever were.
_UNRELEASED = (
    select(func.count())
    .select_from(settlements)
    .where(
        settlements.c.card_released_at.is_(None),
        select(cards.c.id)
        .where(cards.c.turn_id == settlements.c.turn_id, cards.c.given_up.is_(None))
        .exists(),
    )
)
FLEET = select(
    db_now().label("now"),
    _OPEN_SINCE.scalar_subquery().label("open_since"),
    _RUNNING_SINCE.scalar_subquery().label("running_since"),
    _UNRELEASED.scalar_subquery().label("unreleased"),
)
"""One statement, so that a scrape costs one way to the database and back."""


async def fleet(tx: AsyncConnection) -> Fleet:
    """The state of all processes together."""
    row = (await tx.execute(FLEET)).one()
    return Fleet(_age(row.now, row.open_since), _age(row.now, row.running_since), int(row.unreleased))


def _age(now: float, since: float | None) -> float:
    return 0.0 if since is None else max(0.0, now - since)


async def cut_wait_s(tx: AsyncConnection, turn_id: str) -> float | None:
    """Seconds from the decision of the stop or steer that cut a turn until its settle; None without one."""
    stopped_at = select(func.min(tombstones.c.at)).where(tombstones.c.turn_id == turn_id)
    steered_at = select(func.min(inbox.c.decided_at)).where(
        inbox.c.conversation_id == turns.c.conversation_id,
        inbox.c.effect == Effect.STEER,
        inbox.c.decided_at.between(turns.c.started_at, settlements.c.settled_at),
    )
    statement = (
        select(
            settlements.c.settled_at,
            stopped_at.scalar_subquery().label("stopped_at"),
            steered_at.correlate(turns, settlements).scalar_subquery().label("steered_at"),
        )
        .join(turns, turns.c.id == settlements.c.turn_id)
        .where(settlements.c.turn_id == turn_id)
    )
    row = (await tx.execute(statement)).first()
    if row is None:
        return None
    asked_at = row.steered_at if row.stopped_at is None else row.stopped_at
    return None if asked_at is None else _age(row.settled_at, asked_at)


async def steer_wait_s(tx: AsyncConnection, conversation_id: str, turn_id: str) -> float | None:
    """Seconds since the decision of the oldest steer that this turn has read; None when it has read none."""
    statement = select(db_now().label("now"), func.min(inbox.c.decided_at).label("decided_at")).where(
        inbox.c.conversation_id == conversation_id,
        inbox.c.turn_id == turn_id,
        inbox.c.effect == Effect.STEER,
    )
    row = (await tx.execute(statement)).one()
    return None if row.decided_at is None else _age(row.now, row.decided_at)

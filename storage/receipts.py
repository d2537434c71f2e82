"""Receipts: which reaction a message should bear, and which it was last given.

After a lost answer nobody knows whether a reaction stands: then `receipt_shown` names all that may, and ends
with a question mark, so that it is due until an answer has come.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.claims import held_by_others
from storage.engine import db_now
from storage.tables import conversations, inbox

DOUBT = "?"


def thing(row: Row[Any]) -> str:
    """What is claimed by whoever shows this receipt."""
    return f"receipt:{row.origin}"


_THING = literal("receipt:").concat(inbox.c.origin)

_IS_DUE = (
    inbox.c.receipt.is_distinct_from(inbox.c.receipt_shown),
    inbox.c.message_ref.is_not(None),
    inbox.c.fate != "replaced",  # the newer version of the message bears it
)


async def due(tx: AsyncConnection, owner: str, limit: int = 50) -> list[Row[Any]]:
    """Messages whose reaction is not what it should be, oldest first; not those that others see to."""
    statement = (
        select(
            inbox,
            conversations.c.platform,
            conversations.c.workspace,
            conversations.c.channel,
            conversations.c.thread,
        )
        .join(conversations)
        .where(*_IS_DUE, inbox.c.receipt_not_before <= db_now(), ~held_by_others(_THING, owner))
        .order_by(inbox.c.seq)
        .limit(limit)
    )
    return list((await tx.execute(statement)).all())


async def still_due(tx: AsyncConnection, row: Row[Any]) -> bool:
    """Whether a message that was found to be due still asks for the same."""
    statement = select(inbox.c.seq).where(
        *_IS_DUE,
        inbox.c.seq == row.seq,
        inbox.c.receipt.is_not_distinct_from(row.receipt),
        inbox.c.receipt_shown.is_not_distinct_from(row.receipt_shown),
    )
    return (await tx.execute(statement)).first() is not None


def due_in(owner: Any) -> Any:
    """Seconds until a reaction is to be shown, as a scalar subquery; null when none is."""
    soonest = func.min(inbox.c.receipt_not_before) - db_now()
    return select(soonest).where(*_IS_DUE, ~held_by_others(_THING, owner)).scalar_subquery()


async def begin(tx: AsyncConnection, row: Row[Any]) -> None:
    """Before the platform is asked: from now on the new reaction may stand as well as the old ones."""
    if row.receipt is not None:
        may = dict.fromkeys([*may_stand(row), row.receipt])
        await _may_stand_now(tx, row, f"{','.join(may)}{DOUBT}")


async def _may_stand_now(tx: AsyncConnection, row: Row[Any], names: str | None, **values: Any) -> None:
    await tx.execute(
        update(inbox)
        .where(inbox.c.origin == row.origin, inbox.c.seq >= row.seq)
        .values(receipt_shown=names, **values)
    )


async def shown(tx: AsyncConnection, seq: int, receipt: str | None) -> None:
    """The platform shows this reaction (or never will); an edit that came meanwhile shows it too."""
    message = select(inbox.c.origin).where(inbox.c.seq == seq).scalar_subquery()
    await tx.execute(
        update(inbox)
        .where(inbox.c.origin == message, inbox.c.seq >= seq)
        .values(receipt_shown=receipt, receipt_tries=0)
    )


async def try_later(tx: AsyncConnection, row: Row[Any], seconds: float, *, in_doubt: bool) -> None:
    """The platform did not take it now; `in_doubt` when it may have and its answer was lost."""
    may = dict.fromkeys([*may_stand(row), *filter(None, [row.receipt])])
    await _may_stand_now(
        tx,
        row,
        f"{','.join(may)}{DOUBT}" if in_doubt and may else row.receipt_shown,
        receipt_not_before=db_now() + seconds,
        receipt_tries=inbox.c.receipt_tries + 1,
    )


def may_stand(row: Row[Any]) -> list[str]:
    """The reactions of ours that the message may bear now."""
    return row.receipt_shown.rstrip(DOUBT).split(",") if row.receipt_shown else []

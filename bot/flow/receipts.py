"""Receipts: one reaction of ours on a person's message, made to match what became of it."""

from __future__ import annotations

from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import Permanent, Rejected, Temporary
from bot.flow.bells import Bells, Topic
from bot.ports import Chat
from storage import receipts
from storage.conversations import thread_of
from storage.engine import Database

log = structlog.get_logger()

MOST_TRIES = 30


class ReceiptKeeper:
    """Shows receipts, the newest state only."""

    def __init__(self, database: Database, bells: Bells, chat: Chat) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat

    async def run(self) -> None:
        """Reconcile for ever."""
        while True:
            for row in await self._database.read(receipts.due):
                await self._show(row)
            await self._bells.of(Topic.RECEIPTS).wait(1.0)

    async def _show(self, row: Row[Any]) -> None:
        try:
            await self._make_only(row)
        except (Temporary, Rejected) as error:
            if row.receipt_tries < MOST_TRIES:
                growing = min(60.0, 0.5 * 2.0 ** min(row.receipt_tries, 10))
                told = getattr(error, "retry_after_s", None)
                await self._database.write(receipts.try_later, row, told or growing, in_doubt=told is None)
                return
        except Permanent as error:
            log.info("receipt_given_up", message=row.key, error=str(error))
        await self._database.write(receipts.shown, row.seq, row.receipt)

    async def _make_only(self, row: Row[Any]) -> None:
        """Make the receipt our one reaction; of several that may stand the others go first."""
        thread, others = thread_of(row), [name for name in receipts.may_stand(row) if name != row.receipt]
        for name in others[:-1]:
            await self._chat.set_receipt(thread, row.message_ref, None, name)
        await self._chat.set_receipt(thread, row.message_ref, row.receipt, others[-1] if others else None)

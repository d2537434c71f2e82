"""Receipts: one reaction of ours on a person's message, made to match what became of it."""

from __future__ import annotations

from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import Permanent, Rejected, Temporary
from bot.flow.bells import Bells, Topic
from bot.flow.claiming import ClaimLapsed, Claims
from bot.flow.pauses import pause_s
from bot.measures import Measures
from bot.ports import Chat
from storage import receipts
from storage.conversations import thread_of
from storage.engine import Database

log = structlog.get_logger()


class ReceiptKeeper:
    """Shows receipts, the newest state only."""

    def __init__(
        self, database: Database, bells: Bells, chat: Chat, claims: Claims, measures: Measures
    ) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._claims = claims
        self._measures = measures

    async def run(self) -> None:
        """Reconcile for ever."""
        while True:
            due = await self._database.glance(receipts.due, self._claims.owner)
            granted = await self._claims.take(map(receipts.thing, due))
            for row in due:
                if receipts.thing(row) in granted:
                    await self._show_claimed(row)
            await self._bells.of(Topic.RECEIPTS).wait()

    async def _show_claimed(self, row: Row[Any]) -> None:
        try:
            self._claims.require(receipts.thing(row))
            if await self._database.glance(receipts.still_due, row):  # it was read before it was claimed
                await self._show(row)
        except ClaimLapsed:
            log.info("receipt_left", message=row.key)
        finally:
            self._claims.give_back(receipts.thing(row))

    async def _show(self, row: Row[Any]) -> None:
        await self._database.write(receipts.begin, row)
        try:
            await self._make_only(row)
        except (Temporary, Rejected) as error:
            await self._failed(row, error)
            return
        except Permanent as error:
            log.info("receipt_given_up", message=row.key, error=str(error))
            self._measures.given_up("receipt")
        await self._database.write(receipts.shown, row.seq, row.receipt)

    async def _failed(self, row: Row[Any], error: Temporary | Rejected) -> None:
        """It is tried for ever: few calls, and none of them while the platform is known to refuse us."""
        was_refused = isinstance(error, Rejected) or error.retry_after_s is not None
        pause = pause_s(row.receipt_tries, error)
        await self._database.write(receipts.try_later, row, pause, in_doubt=not was_refused)

    async def _make_only(self, row: Row[Any]) -> None:
        """Make the receipt our one reaction; of several that may stand the others go first."""
        thread, others = thread_of(row), [name for name in receipts.may_stand(row) if name != row.receipt]
        for name in others[:-1]:
            await self._chat.set_receipt(thread, row.message_ref, None, name)
        await self._chat.set_receipt(thread, row.message_ref, row.receipt, others[-1] if others else None)

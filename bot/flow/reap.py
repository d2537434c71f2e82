"""What a crash left: dead turns are settled, cards still live are shown again, unknown ones are released.

Every function here is one conditional change, harmless to run anywhere, any time, as often as one likes.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.errors import Permanent, Rejected, Temporary
from bot.flow.bells import Bells, Topic
from bot.measures import Measures
from bot.ports import Chat, Found
from core.arrivals import Arrival, Thread
from core.card import Card, CardState
from core.reasons import Reason
from storage import cards, claims, settlements, turns
from storage.engine import Database

log = structlog.get_logger()

LOST_SINCE_S = 86_400.0
FORGET_AFTER_S = 3_600.0
RELEASE_TRIES = 20


class Reaper:
    """Settles what lost its worker, and releases what no record knows."""

    def __init__(
        self,
        database: Database,
        bells: Bells,
        chat: Chat,
        worker: str,
        resume_within_s: float,
        *,
        measures: Measures,
    ) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._worker = worker
        self._resume_within_s = resume_within_s
        self._measures = measures
        self._releasing: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Settle dead turns for ever, whenever somebody has seen one."""
        while True:
            await self._bells.of(Topic.DEAD).wait()
            await self.settle_dead_turns()

    async def settle_dead_turns(self) -> None:
        """Settle every turn whose lease has run out: tombstone, stamp, else stale."""
        for conversation_id in await self._database.glance(settlements.dead_turns):
            ending = await self._database.write(
                settlements.settle_dead_turn, conversation_id, self._worker, self._resume_within_s
            )
            if ending is not None:
                log.warning("reaped", conversation=conversation_id, reason=ending.reason)
                self._measures.settled(ending.reason)
                self._bells.ring(Topic.WORK, Topic.CARDS, Topic.POSTS)

    async def forget_lapsed_claims(self) -> None:
        """Forget the claims of processes that are long gone."""
        await self._database.write(claims.forget_lapsed, FORGET_AFTER_S)

    async def sweep_cards(self, grace_s: float) -> None:
        """Show again every card that is still live so long after its turn ended."""
        if await self._database.write(cards.sweep, grace_s):
            self._bells.ring(Topic.CARDS)

    def release_lost_card(self, click: Arrival) -> None:
        """A Stop button of a turn that no record knows: its card is released as lost."""
        if click.stops_turn and click.message_ref:
            self._begin_release(click.thread, click.message_ref, click.stops_turn)

    async def release_lost_cards(self, now: float) -> None:
        """After a start with an empty database: release the live cards that an earlier database knew."""
        found = await self._live_cards(now - LOST_SINCE_S)
        by_turn = {str(card.payload.get("turn_id", "")): (thread, card.ref) for thread, card in found}
        known = await self._database.read(turns.known, list(by_turn))  # what came meanwhile has cards too
        for turn_id, (thread, ref) in by_turn.items():
            if turn_id not in known:
                self._begin_release(thread, ref, turn_id)

    async def _live_cards(self, since: float) -> list[tuple[Thread, Found]]:
        for attempt in range(RELEASE_TRIES):
            try:
                return await self._chat.live_cards(since)
            except (Temporary, Rejected) as error:
                log.warning("lost_cards_not_read", error=str(error))
                await asyncio.sleep(_pause(error, attempt))
            except Permanent as error:
                log.warning("lost_cards_not_read", error=str(error))
                break
        return []

    async def close(self) -> None:
        """Release nothing more; what was not released is at the next start."""
        for task in self._releasing:
            task.cancel()
        await asyncio.gather(*self._releasing, return_exceptions=True)

    def _begin_release(self, thread: Thread, ref: str, turn_id: str) -> None:
        task = asyncio.create_task(self._release(thread, ref, turn_id), name=f"release {turn_id}")
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release(self, thread: Thread, ref: str, turn_id: str) -> None:
        card = Card(
            turn_id=turn_id,
            state=CardState.RELEASED,
            goal="",
            headline="Lost: the records of this work are gone. Mention me to start again.",
            reason=Reason.STALE,
            shrunk=True,
        )
        for attempt in range(RELEASE_TRIES):
            try:
                await self._chat.card_slot(thread, ref, urgent=True)
                await self._chat.show_card(thread, ref, card)
                log.info("lost_card_released", turn=turn_id)
                return
            except (Temporary, Rejected) as error:
                await asyncio.sleep(_pause(error, attempt))
            except Permanent as error:
                log.warning("lost_card_given_up", turn=turn_id, error=str(error))
                self._measures.given_up("card")
                return


def _pause(error: Temporary | Rejected, attempt: int) -> float:
    return getattr(error, "retry_after_s", None) or min(60.0, 2.0**attempt)

"""The card reconciler: makes the platform show what the records say. Events only wake it.

Level-triggered: it compares what a card should show with what was last shown, shows the newest state and not
every one, lets releases go first, and tries until the platform has taken the released state.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Row

from bot.errors import Gone, Limited, OutcomeUnknown, Permanent, Rejected, Temporary, Unchangeable
from bot.flow.bells import Bells, Topic
from bot.flow.claiming import ClaimLapsed, Claims
from bot.flow.pauses import MEMORY_S, Outage, pause_s
from bot.measures import Measures
from bot.ports import Chat
from core.arrivals import Thread
from core.card import Card, CardState, LineState
from core.progress import CallFacts, TurnFacts, card_of
from core.reasons import Reason
from core.resume import CallState
from core.tools import Outcome
from core.usage import total
from storage import cards
from storage.cards import CardRecords
from storage.conversations import thread_of
from storage.engine import Database
from storage.errors import DatabaseTrouble
from storage.reports import usage_of

log = structlog.get_logger()

SHORTEST_PAUSE_S = 0.05

CLIENT_LIMIT_S = 10.0
"""A post whose answer was lost may still arrive for so long."""

FROZEN_S = 300.0
"""A live card that was lost or frozen once more is left alone for so long; its release is tried at once."""

MOST_POSTED_ANEW = 2
"""Once while the turn runs, and once to say how it ended."""


@dataclass(slots=True)
class _Showing:
    """A card on its way: its task, and whether it waits in the urgent line."""

    task: asyncio.Task[None]
    urgent: bool
    waits_for_slot: bool = True


class CardKeeper:
    """Shows cards. One call at a time for each card."""

    def __init__(
        self,
        database: Database,
        bells: Bells,
        chat: Chat,
        claims: Claims,
        *,
        min_interval_s: float,
        measures: Measures,
    ) -> None:
        self._database = database
        self._bells = bells
        self._chat = chat
        self._claims = claims
        self._min_interval_s = min_interval_s
        self._measures = measures
        self._showing: dict[str, _Showing] = {}
        self._outage = Outage()

    async def run(self) -> None:
        """Reconcile for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._heartbeat()
                due = await self._due()
                granted = await self._claims.take(cards.thing(row.id) for row in due)
                for row in due:
                    if cards.thing(row.id) in granted:
                        self._show(group, row)
                await self._bells.of(Topic.CARDS).wait(await self._until_next())

    async def settle_down(self, timeout_s: float) -> None:
        """Before the process ends: give what is due its chance, for so long at most."""
        async with asyncio.timeout(timeout_s):
            # Other processes show cards too: there is nothing here to be woken by.
            while await self._due() or self._showing:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _due(self) -> list[Row[Any]]:
        return await self._database.glance(cards.due, self._claims.owner, self._min_interval_s)

    async def _until_next(self) -> float | None:
        """Seconds until a card that is not on its way is due, None: when the bell rings."""
        pause = await self._database.glance(
            cards.next_due_in, self._claims.owner, self._min_interval_s, list(self._showing)
        )
        return None if pause is None else max(SHORTEST_PAUSE_S, pause)

    async def _heartbeat(self) -> None:
        if await self._database.glance(cards.is_heartbeat_due):
            await self._database.write(cards.heartbeat)

    def _show(self, group: asyncio.TaskGroup, row: Row[Any]) -> None:
        """Begin to show a card; one that waits for a slot moves to the urgent line once it is urgent."""
        urgent = bool(row.released or row.urgent)
        under_way = self._showing.get(row.id)
        if under_way is not None:
            if not (urgent and not under_way.urgent and under_way.waits_for_slot):
                return
            under_way.task.cancel()
        task = group.create_task(self._show_one(row.id, thread_of(row), urgent), name=f"show {row.id}")
        showing = self._showing[row.id] = _Showing(task, urgent)
        task.add_done_callback(partial(self._done, row.id, showing))

    def _done(self, card_id: str, showing: _Showing, _: asyncio.Task[None]) -> None:
        if self._showing.get(card_id) is showing:
            del self._showing[card_id]
            self._claims.give_back(cards.thing(card_id))
            self._bells.ring(Topic.CARDS)

    async def _show_one(self, card_id: str, thread: Thread, urgent: bool) -> None:
        records = await self._database.read(cards.records, card_id)
        if records.card.wanted <= records.card.shown:  # it was shown while it was found to be due
            return
        try:
            if await self._looked_up(records, thread):
                return
            if records.card.shown_digest != digest(card_from(records)) or _heartbeat_due(records):
                await self._chat.card_slot(thread, records.card.message_ref, urgent=urgent)
            self._showing[card_id].waits_for_slot = False
            await self._show_newest(card_id, thread)
            await self._taken(records)
        except (DatabaseTrouble, ClaimLapsed) as error:  # it is still due, here or elsewhere
            log.warning("card_left", card=card_id, error=f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001  sorted below by what must be done
            self._outage.met(error)
            await self._failed(records, thread, error)

    async def _show_newest(self, card_id: str, thread: Thread) -> None:
        records = await self._database.read(cards.records, card_id)
        read_at = asyncio.get_running_loop().time()
        card, row = card_from(records), records.card
        ref = row.message_ref
        if ref is None or row.shown_digest != digest(card) or _heartbeat_due(records):
            if ref is None:
                await self._database.write(cards.begin_post, card_id)
            self._claims.require(cards.thing(card_id))
            ref = await self._chat.show_card(thread, ref, card)
        await self._database.write(
            cards.shown,
            card_id,
            self._claims.owner,
            revision=row.wanted,
            ref=ref,
            digest=digest(card),
            turn_id=card.turn_id,
            released=card.state is CardState.RELEASED,
        )
        if records.settlement is not None and records.settlement.card_released_at is None:
            settled_before_s = records.now - records.settlement.settled_at
            self._measures.card_released(settled_before_s + asyncio.get_running_loop().time() - read_at)

    async def _looked_up(self, records: CardRecords, thread: Thread) -> bool:
        """After a post whose answer was lost, look for the card before posting it again.

        Returns whether that ended this try.
        """
        row = records.card
        if row.posting_since is None or row.message_ref is not None:
            return False
        found = await self._chat.find(thread, row.posting_since - CLIENT_LIMIT_S)
        ours = [
            one.ref
            for one in found
            if one.event_type == "watchkeeper_card" and one.payload.get("turn_id") in records.turn_ids
        ]
        if ours:
            await self._database.write(cards.found, row.id, ours[0])
            for double in ours[1:]:
                await self._chat.delete(thread, double)
            self._bells.ring(Topic.CARDS)
            return True
        left = row.posting_since + CLIENT_LIMIT_S - records.now
        if left > 0:
            await self._database.write(cards.try_later, row.id, left, not_sent=False)
            return True
        await self._database.write(cards.try_later, row.id, 0.0, not_sent=True)
        return False

    async def _taken(self, records: CardRecords) -> None:
        """Where the platform took one card others that wait for that may have their turn."""
        if self._outage.is_over():
            await self._database.write(cards.due_again, MEMORY_S)
        if records.card.message_ref is None:
            left = await self._database.read(cards.left_behind, records.card.conversation_id)
            if left:
                await self._database.write(cards.reopen, left)

    async def _failed(self, records: CardRecords, thread: Thread, error: Exception) -> None:
        """What becomes of a card that the platform did not take."""
        card_id = records.card.id
        pause = pause_s(records.card.tries, error)
        match error:
            case OutcomeUnknown():
                await self._database.write(cards.try_later, card_id, pause, not_sent=False)
            case Limited() if error.retry_after_s and records.card.message_ref is not None:
                await self._database.write(cards.try_later, card_id, 0.0, not_sent=True)
            case Temporary() | Rejected():
                # What was sent before may still have arrived: looking for it may be what failed now.
                never_sent = records.card.posting_since is None
                await self._database.write(cards.try_later, card_id, pause, not_sent=never_sent)
            case Gone() | Unchangeable() if records.card.message_ref is not None:
                await self._lost(records, thread, error)
            case Permanent():
                await self._give_up(records, error, f"{error.code}: {error}")
            case _:
                log.error("card_failed", card=card_id, turn=records.turn.id, exc_info=error)
                await self._database.write(cards.try_later, card_id, max(5.0, pause), not_sent=False)

    async def _lost(self, records: CardRecords, thread: Thread, error: Gone | Unchangeable) -> None:
        """Another message takes the place of one that is gone or cannot be changed, but not for ever."""
        card, is_live = records.card, records.settlement is None
        if isinstance(error, Gone) and not is_live:
            await self._give_up(records, error, f"{cards.GONE}{error}")
        elif card.posted_anew < (1 if is_live else MOST_POSTED_ANEW):
            log.warning("card_posted_anew", card=card.id, turn=records.turn.id, error=str(error))
            if isinstance(error, Unchangeable) and not await self._take_away(records, thread):
                return
            await self._database.write(cards.post_anew, card.id)
        elif is_live:
            await self._database.write(cards.try_later, card.id, FROZEN_S, not_sent=True)
        else:
            await self._give_up(records, error, f"{error.code}: {error}")

    async def _take_away(self, records: CardRecords, thread: Thread) -> bool:
        """A card that cannot be changed would be live for ever; where it may not be deleted either it is."""
        card = records.card
        try:
            await self._chat.delete(thread, card.message_ref)
        except Temporary as error:
            await self._database.write(cards.try_later, card.id, pause_s(card.tries, error), not_sent=True)
            return False
        except Permanent as error:
            log.warning("card_left_behind", card=card.id, turn=records.turn.id, error=str(error))
        return True

    async def _give_up(self, records: CardRecords, error: Permanent, why: str) -> None:
        log.warning("card_given_up", card=records.card.id, turn=records.turn.id, error=str(error))
        never_sent = records.card.posting_since is None
        await self._database.write(cards.give_up, records.card.id, why, not_sent=never_sent)
        self._measures.given_up("card")


def _heartbeat_due(records: CardRecords) -> bool:
    return records.settlement is None and records.now - records.card.shown_at >= cards.HEARTBEAT_S


def digest(card: Card) -> str:
    """What tells two states of a card apart: everything but the clocks that only run."""
    lines = tuple(
        replace(line, seconds=None) if line.state is LineState.RUNNING else line for line in card.lines
    )
    still = replace(card, updated_at=0.0, lines=lines)
    return hashlib.sha256(repr(still).encode(errors="replace")).hexdigest()


def card_from(records: CardRecords) -> Card:
    """The card that the records ask for."""
    turn, settlement = records.turn, records.settlement
    names = records.names
    facts = TurnFacts(
        turn_id=turn.id,
        goal=turn.goal,
        started_at=records.began_at,
        steps=turn.steps,
        activity=turn.activity,
        reason=Reason(settlement.reason) if settlement is not None else None,
        ended_by=_named(settlement.cut_by, names) if settlement is not None else None,
        cause=settlement.cause if settlement is not None else None,
        settled_at=settlement.settled_at if settlement is not None else None,
        stopping_for=_named(records.stop_by, names),
        steered_now_by=_named(records.steer_by, names),
    )
    calls = [
        CallFacts(
            id=row.id,
            number=row.number,
            tool=row.tool,
            input=row.input,
            state=CallState(row.state),
            limit_s=row.limit_s,
            started_at=row.started_at,
            finished_at=row.finished_at,
            outcome=Outcome(row.outcome) if row.outcome else None,
        )
        for row in records.calls
    ]
    usage = total(usage_of(row) for row in records.requests)
    steered_by = [row.author_name or row.author_id for row in records.steers]
    return card_of(facts, calls, usage, steered_by, records.now)


def _named(person: str | None, names: dict[str, str]) -> str | None:
    return None if person is None else names.get(person, person)

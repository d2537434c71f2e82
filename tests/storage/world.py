"""Words for what happens to a database: people write, workers claim, turns step and end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Table, select, update

from core import settle
from core.arrivals import Arrival, AuthorRole, Deletion, Edit, Marker, Source, Thread
from core.history import Block, Call, Message, Text, assistant
from core.policy import Effect, Policy, policy
from core.settle import Ending
from core.signals import Held, Signal
from core.tools import CallResult, Outcome, ToolClass
from core.usage import Usage
from storage import (
    cards,
    claims,
    conversations,
    decisions,
    inbox,
    outbox,
    receipts,
    settlements,
    signals,
    steps,
    turns,
)
from storage import tables as t
from storage.conversations import Claimed
from storage.decisions import Decided
from storage.engine import Database, db_now
from storage.fence import Fence
from storage.inbox import Stored
from storage.steps import Booking, PlannedCall
from storage.turns import StartedTurn

THREAD = Thread("slack", "T1", "C1", "1700000000.000100")
POLICY = policy()
ANSWER = assistant(Text("The deploy removed an index."))
ROLES = {"Ana": AuthorRole.INITIATOR, "Gil": AuthorRole.GUEST, "Robo": AuthorRole.BOT}
READ, WRITE, SET = ToolClass.READ_ONLY, ToolClass.SIDE_EFFECT, ToolClass.IDEMPOTENT


def ok(text: str = "fine") -> CallResult:
    """A result without anything special."""
    return CallResult(Outcome.OK, text)


def booking(cost: float | None = 0.01, tokens: int = 10) -> Booking:
    """A request that cost something."""
    return Booking("model", Usage(tokens, 5, 3, 2, cost))


class World:
    """One thread and everybody in it. Workers are named; messages are numbered."""

    def __init__(self, database: Database, thread: Thread = THREAD) -> None:
        self.database = database
        self.thread = thread
        self.id = thread.conversation_id
        self._count = 0
        self._began_at = time.time() - 1  # what is told of later was sent later

    # --- people --------------------------------------------------------------------------------------

    def message(self, text: str = "why is checkout slow?", by: str = "Ana", **changes: Any) -> Arrival:
        """A message of a person that mentions us."""
        self._count += 1
        given: dict[str, Any] = {
            "thread": self.thread,
            "key": f"slack:C1:{self._count}",
            "source": Source.MENTION,
            "author_id": by,
            "text": text,
            "message_ref": str(self._count),
            "sent_at": self._began_at + self._count / 1000,
            "may_open": True,
        }
        return Arrival(**{**given, **changes})

    async def stores(self, *incoming: Arrival | Edit | Deletion) -> list[Stored]:
        """What comes in is stored."""
        return await self.database.write(inbox.ingest, incoming)

    async def hears(self, text: str = "why is checkout slow?", by: str = "Ana", **changes: Any) -> int:
        """A message is stored and nothing is decided about it; returns its number."""
        [stored] = await self.stores(self.message(text, by, **changes))
        assert stored.seq is not None
        return stored.seq

    async def decides(self, seq: int, role: AuthorRole | None = None, **changes: Any) -> Effect | None:
        """What a stored message does is fixed."""
        row = await self.one(t.inbox, seq=seq)
        given: dict[str, Any] = {"role": role or ROLES.get(row.author_id, AuthorRole.MEMBER), **changes}
        rules: Policy = given.pop("policy", POLICY)
        decided: Decided = await self.database.write(
            decisions.decide, seq, rules, author_name=f"{row.author_id} A.", **given
        )
        return decided.effect

    async def says(self, text: str = "why is checkout slow?", by: str = "Ana", **changes: Any) -> int:
        """A message is stored and decided."""
        seq = await self.hears(text, by, **changes)
        await self.decides(seq)
        return seq

    async def queues(self, text: str = "later: and the disk?", by: str = "Ben") -> int:
        """A message that asks to wait."""
        return await self.says(text, by, marker=Marker.LATER)

    async def stops(self, by: str = "Ana", turn_id: str | None = None) -> int:
        """Somebody asks to stop, with words or with a turn's button."""
        return await self.says("!stop", by, source=Source.STOP_REQUEST, stops_turn=turn_id)

    # --- workers -------------------------------------------------------------------------------------

    async def claims(self, worker: str = "w1", lease_s: float = 60.0) -> Claimed | None:
        """A worker takes what has waited longest."""
        claimed = await self.database.write(conversations.claim, worker, lease_s)
        return claimed[0] if claimed else None

    async def claimed(self, worker: str = "w1") -> Claimed:
        """The conversation is claimed; there is something to claim."""
        claimed = await self.claims(worker)
        assert claimed is not None
        return claimed

    async def starts(
        self, worker: str = "w1", *, gather_s: float = 0.0, notices: Sequence[str] = ()
    ) -> StartedTurn:
        """A worker claims the conversation and starts a turn."""
        return await self.starts_on(await self.claimed(worker), worker, gather_s=gather_s, notices=notices)

    async def starts_on(
        self,
        claimed: Claimed,
        worker: str = "w1",
        *,
        gather_s: float = 0.0,
        notices: Sequence[str] = (),
    ) -> StartedTurn:
        """A turn starts on what was claimed."""
        started = await self.database.write(turns.start, claimed.fence, worker, gather_s, notices)
        assert started is not None
        return started

    async def begins(self) -> StartedTurn:
        """Ana asks and a turn starts."""
        await self.says()
        return await self.starts()

    async def commits(
        self,
        turn: StartedTurn,
        *calls: PlannedCall | tuple[str, ToolClass],
        past_steers: bool = False,
        bookings: Sequence[Booking] = (),
    ) -> Message:
        """A message with these calls is committed."""
        planned = [one if isinstance(one, PlannedCall) else plan(*one) for one in calls]
        blocks: list[Block] = [Call(one.id, one.tool, one.input) for one in planned]
        message = assistant(Text("I look."), *blocks)
        await self.database.write(
            steps.commit, turn.fence, message, planned, bookings, seen=turn.seen, past_steers=past_steers
        )
        return message

    async def marks_started(self, turn: StartedTurn, call_id: str) -> None:
        """A call is marked started."""
        await self.database.write(steps.begin, turn.fence, call_id)

    async def returns(self, turn: StartedTurn, call_id: str, result: CallResult | None = None) -> None:
        """A call comes back."""
        await self.database.write(steps.record_result, turn.fence, call_id, result or ok())

    async def closes(self, turn: StartedTurn, stamp: Signal | None = None, by: str = "Ben") -> Message:
        """The batch goes into the transcript, with the stamp of a cut."""
        held = None if stamp is None else Held(stamp, by)
        return await self.database.write(steps.close, turn.fence, held)

    async def steps_once(self, turn: StartedTurn, call_id: str = "a") -> None:
        """One whole step with one call."""
        await self.commits(turn, (call_id, READ), bookings=[booking()])
        await self.returns(turn, call_id)
        await self.closes(turn)

    async def settles(
        self, turn: StartedTurn, ending: Ending | None = None, *, bookings: Sequence[Booking] = ()
    ) -> Ending:
        """The turn is settled; without an ending it has answered."""
        return await self.database.write(
            settlements.settle_turn,
            turn.fence,
            "w1",
            ending or settle.completed(ANSWER),
            seen=turn.seen,
            bookings=bookings,
        )

    async def probes(self, turn: StartedTurn) -> Held | None:
        """What a probe of the turn finds."""
        return await self.database.read(signals.first_held, turn.fence)

    async def cut(self, turn: StartedTurn, signal: Signal, by: str = "Ben", **changes: Any) -> Ending:
        """The turn is cut by a signal."""
        return await self.settles(turn, settle.cut(Held(signal, by), **changes))

    async def loses_its_worker(self) -> None:
        """The lease runs out."""
        await self.change(t.conversations, {"id": self.id}, lease_expires=0)

    async def reaps(self, worker: str = "w2", resume_within_s: float = 3600.0) -> Ending | None:
        """Whoever looks settles the dead turn."""
        return await self.database.write(settlements.settle_dead_turn, self.id, worker, resume_within_s)

    async def falls_quiet(self) -> None:
        """The time of gathering is over."""
        await self.change(t.conversations, {"id": self.id}, not_before=0)

    # --- the platform ----------------------------------------------------------------------------------

    async def shows_everything(self) -> None:
        """Cards, messages and receipts: the platform takes all that is due."""
        for card in await self.database.read(cards.due, "w1", 0.0):
            await self.shows(card.id)
        while posts := await self.database.read(outbox.due, "w1"):
            for post in posts:
                await self.database.write(outbox.part_done, post.id, 1, 1)
        for row in await self.database.read(receipts.due, "w1"):
            await self.database.write(receipts.shown, row.seq, row.receipt)

    async def shows(self, card_id: str, **changes: Any) -> None:
        """The platform takes the newest state of a card."""
        await self.database.write(claims.take, [cards.thing(card_id)], "w1", 20.0)
        card = await self.one(t.cards, id=card_id)
        settled = await self.rows(t.settlements, turn_id=card.turn_id)
        given: dict[str, Any] = {
            "revision": card.wanted,
            "ref": card.message_ref or f"ref of {card_id}",
            "digest": "digest",
            "turn_id": card.turn_id,
            "released": bool(settled),
        }
        await self.database.write(cards.shown, card_id, "w1", **{**given, **changes})

    # --- looking ---------------------------------------------------------------------------------------

    async def rows(self, table: Table, **where: Any) -> list[Row[Any]]:
        """Rows by the values of columns, in the order of their primary key."""
        statement = select(table).where(*(table.c[name] == value for name, value in where.items()))

        async def query(tx: Any) -> list[Row[Any]]:
            return list((await tx.execute(statement.order_by(*table.primary_key.columns))).all())

        return await self.database.read(query)

    async def one(self, table: Table, **where: Any) -> Row[Any]:
        """The only such row."""
        [row] = await self.rows(table, **where)
        return row

    async def conversation(self) -> Row[Any]:
        """The conversation's row."""
        return await self.one(t.conversations, id=self.id)

    async def now(self) -> float:
        """The database's time."""

        async def query(tx: Any) -> float:
            return float((await tx.execute(select(db_now()))).scalar_one())

        return await self.database.read(query)

    async def fate(self, seq: int) -> str:
        """What became of a message."""
        return str((await self.one(t.inbox, seq=seq)).fate)

    async def fates(self) -> dict[str, str]:
        """The fate of each message of the thread, by its text."""
        return {row.text: row.fate for row in await self.rows(t.inbox, conversation_id=self.id)}

    async def posts(self, kind: str | None = None) -> list[str]:
        """What was queued for the platform."""
        rows = await self.rows(t.outbox, conversation_id=self.id)
        return [row.text for row in rows if kind in (None, row.kind)]

    async def transcript(self) -> list[Message]:
        """The committed messages."""
        from storage import transcripts  # noqa: PLC0415  the name is this method's too

        return await self.database.read(transcripts.messages, self.id)

    async def reasons(self) -> list[str]:
        """The reasons of all settled turns of the thread, by number."""
        settled = {row.turn_id: row.reason for row in await self.rows(t.settlements)}
        numbered = sorted(await self.rows(t.turns, conversation_id=self.id), key=lambda row: row.number)
        return [settled[row.id] for row in numbered if row.id in settled]

    # --- tampering -------------------------------------------------------------------------------------

    async def change(self, table: Table, where: dict[str, Any], **values: Any) -> None:
        """Change rows behind the program's back."""
        statement = update(table).where(*(table.c[name] == value for name, value in where.items()))

        async def write(tx: Any) -> None:
            await tx.execute(statement.values(**values))

        await self.database.write(write)

    async def insert(self, table: Table, **values: Any) -> None:
        """Insert a row behind the program's back."""

        async def write(tx: Any) -> None:
            await tx.execute(table.insert().values(**values))

        await self.database.write(write)


def plan(call_id: str, tool_class: ToolClass = READ, *, result: CallResult | None = None) -> PlannedCall:
    """A call about to be committed."""
    return PlannedCall(call_id, "logs", tool_class, {"query": call_id}, 30.0, result)


def stale(fence: Fence) -> Fence:
    """The same fence with a token that has moved on."""
    return Fence(fence.conversation_id, fence.token - 1, fence.turn_id)


def text_of(messages: Sequence[Message]) -> str:
    """All words of these messages."""
    return "\n".join(message.text for message in messages)

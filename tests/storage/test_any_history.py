"""Whatever people do, whichever workers live, die or come back: the laws hold, and it all comes to rest.

Workers drive their turns as the program does; a lost one goes on as if nothing had happened, and must be
refused. The same happens on every kind of database at once, and after each event all say the same.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Column, Double

from core import settle
from core.arrivals import Deletion, Edit, Marker, Source
from core.resume import Resumption
from core.signals import Held, Signal
from core.tools import ToolClass, outcome_unknown
from storage import signals
from storage import tables as t
from storage.engine import Database
from storage.errors import Fenced, Signalled
from storage.turns import StartedTurn
from tests import invariants
from tests.storage.fresh import FRESH, drop
from tests.storage.world import ANSWER, THREAD, World, booking

T = TypeVar("T")

WORKERS = st.sampled_from(["w1", "w2"])
PEOPLE = st.sampled_from(["Ana", "Ben", "Gil"])
CLASSES = st.lists(st.sampled_from(ToolClass), min_size=1, max_size=3)


@dataclass
class Work:
    """What a worker believes about its turn."""

    turn: StartedTurn
    batch: dict[str, Resumption | ToolClass] | None = (
        None  # its calls without a result; None when none is open
    )
    started: set[str] = field(default_factory=set)


class Side:
    """One database and what happens to it: one thread, three people, two workers."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.url = FRESH[kind](folder)
        self.undecided: list[int] = []
        self.work: dict[str, Work] = {}
        self.calls = 0
        self.edits = 0

    async def open(self) -> None:
        self.database = await Database.open(self.url)
        self.world = World(self.database)
        await self.world.says()

    # --- people ------------------------------------------------------------------------------------------

    async def hears(self, words: str, by: str, **changes: Any) -> None:
        self.undecided.append(await self.world.hears(words, by, **changes))

    async def decides(self, index: int) -> None:
        await self.world.decides(self.undecided.pop(index))

    async def changes(self, index: int, *, deletes: bool) -> None:
        keys = [row.key for row in await self.world.rows(t.inbox) if row.key == row.origin]
        key = keys[index % len(keys)]
        self.edits += 1
        change = (
            Deletion(THREAD, key) if deletes else Edit(THREAD, key, f"edit {self.edits}", f"{self.edits}")
        )
        [stored] = await self.world.stores(change)
        if stored.seq is not None:
            row = await self.world.one(t.inbox, seq=stored.seq)
            if row.effect is None and row.fate == "waiting":
                self.undecided.append(row.seq)

    # --- workers -----------------------------------------------------------------------------------------

    async def take_up(self, worker: str) -> None:
        claimed = await self.world.claims(worker)
        if claimed is None:
            return
        turn = await self.world.starts_on(claimed, worker)
        batch: dict[str, Resumption | ToolClass] = {
            call.id: call.resumption for call in turn.open_calls if call.resumption is not Resumption.REUSE
        }
        self.work[worker] = Work(turn, batch if turn.open_calls else None)

    async def model_calls(self, worker: str, classes: list[ToolClass]) -> None:
        work = self.work.get(worker)
        if work is not None and work.batch is None:
            await self._guarded(worker, self._commit(work, classes))

    async def _commit(self, work: Work, classes: list[ToolClass]) -> None:
        ids = [f"call-{self.calls + index}" for index in range(len(classes))]
        self.calls += len(classes)
        calls = list(zip(ids, classes, strict=True))
        try:
            await self.world.commits(work.turn, *calls, bookings=[booking()])
        except Signalled as refused:
            await self._settle(work, settle.cut(refused.held, discarded=True))
            return
        work.batch = dict(calls)

    async def call_is_sent(self, worker: str) -> None:
        work = self.work.get(worker)
        for call_id, what in (work.batch or {}).items() if work else ():
            assert work is not None
            if what in {ToolClass.SIDE_EFFECT, Resumption.RUN_AGAIN} and call_id not in work.started:
                work.started.add(call_id)
                await self._guarded(worker, self.world.marks_started(work.turn, call_id))
                return

    async def call_returns(self, worker: str) -> None:
        work = self.work.get(worker)
        if work is not None and work.batch:
            call_id = next(iter(work.batch))
            await self._guarded(worker, self._return(work, call_id))

    async def _return(self, work: Work, call_id: str) -> None:
        assert work.batch is not None
        what = work.batch[call_id]
        if what in {ToolClass.SIDE_EFFECT, Resumption.RUN_AGAIN} and call_id not in work.started:
            work.started.add(call_id)
            await self.world.marks_started(work.turn, call_id)
        lost = what in {Resumption.CLOSE_UNKNOWN, Resumption.CLOSE_NOT_EXECUTED}
        await self.world.returns(work.turn, call_id, outcome_unknown() if lost else None)
        del work.batch[call_id]

    async def batch_is_closed(self, worker: str) -> None:
        work = self.work.get(worker)
        if work is not None and work.batch == {}:
            await self._guarded(worker, self._close(work))

    async def _close(self, work: Work) -> None:
        held = await self.database.read(signals.first_held, work.turn.fence)
        await self.world.closes(
            work.turn, None if held is None else held.signal, "" if held is None else held.by
        )
        work.batch = None
        if held is not None:
            await self._settle(work, settle.cut(held))

    async def turn_ends(self, worker: str, ending: str) -> None:
        work = self.work.get(worker)
        if work is not None and work.batch is None:
            await self._guarded(worker, self._end(work, ending))

    async def _end(self, work: Work, ending: str) -> None:
        if ending == "looks":
            held = await self.database.read(signals.first_held, work.turn.fence)
            if held is not None:
                await self._settle(work, settle.cut(held, discarded=True))
        elif ending == "drains":
            await self._settle(work, settle.cut(Held(Signal.DRAIN, "shutdown")))
        else:
            own = settle.failed("no model") if ending == "fails" else settle.completed(ANSWER)
            try:
                await self._settle(work, own)
            except Signalled as refused:
                await self._settle(work, settle.cut(refused.held, overtaken=own.message))

    async def _settle(self, work: Work, ending: settle.Ending) -> None:
        await self.world.settles(work.turn, ending, bookings=[booking()])
        for worker in [name for name, other in self.work.items() if other is work]:
            del self.work[worker]

    async def _guarded(self, worker: str, action: Coroutine[Any, Any, None]) -> None:
        """A worker that has lost its lease leaves quietly, and only then."""
        turn = self.work[worker].turn.fence
        try:
            await action
        except Fenced:
            conversation = await self.world.conversation()
            assert (conversation.token, conversation.active_turn) != (turn.token, turn.turn_id)
            self.work.pop(worker, None)

    # --- trouble and the end -------------------------------------------------------------------------------

    async def lose_the_worker(self) -> None:
        await self.world.loses_its_worker()
        await self.world.reaps()

    async def come_to_rest(self) -> None:
        while self.undecided:
            await self.decides(0)
        await self.lose_the_worker()
        for _ in range(30):
            await self.take_up("w3")
            work = self.work.get("w3")
            if work is None:
                break
            while work.batch:
                await self._return(work, next(iter(work.batch)))
            if work.batch is not None:
                await self._close(work)
            if self.work.get("w3") is work:
                await self._end(work, "answers")
        await self.world.shows_everything()

    async def close(self) -> None:
        await self.database.close()


class AnyHistory(RuleBasedStateMachine):
    """What happens, on every kind of database at once."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.sides = [Side(kind, Path(self.folder.name)) for kind in FRESH]
        self.loop = asyncio.new_event_loop()
        self.is_open = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def everywhere(self, happen: Callable[[Side], Coroutine[Any, Any, None]]) -> None:
        for side in self.sides:
            self.run(happen(side))

    @initialize()
    def open(self) -> None:
        self.everywhere(Side.open)
        self.is_open = True

    @rule(by=PEOPLE, marker=st.sampled_from(Marker))
    def somebody_writes(self, by: str, marker: Marker) -> None:
        self.everywhere(lambda side: side.hears(f"words of {by}", by, marker=marker))

    @rule(by=PEOPLE)
    def somebody_asks_to_stop(self, by: str) -> None:
        self.everywhere(lambda side: side.hears("!stop", by, source=Source.STOP_REQUEST))

    @precondition(lambda self: self.sides[0].undecided)
    @rule(data=st.data())
    def a_message_is_decided(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.sides[0].undecided) - 1))
        self.everywhere(lambda side: side.decides(index))

    @rule(index=st.integers(0, 20), deletes=st.booleans())
    def a_message_is_changed(self, index: int, deletes: bool) -> None:
        self.everywhere(lambda side: side.changes(index, deletes=deletes))

    @rule(worker=WORKERS)
    def a_worker_takes_it_up(self, worker: str) -> None:
        self.everywhere(lambda side: side.take_up(worker))

    @rule(worker=WORKERS, classes=CLASSES)
    def the_model_calls(self, worker: str, classes: list[ToolClass]) -> None:
        self.everywhere(lambda side: side.model_calls(worker, classes))

    @rule(worker=WORKERS)
    def a_call_is_sent(self, worker: str) -> None:
        self.everywhere(lambda side: side.call_is_sent(worker))

    @rule(worker=WORKERS)
    def a_call_returns(self, worker: str) -> None:
        self.everywhere(lambda side: side.call_returns(worker))

    @rule(worker=WORKERS)
    def the_batch_is_closed(self, worker: str) -> None:
        self.everywhere(lambda side: side.batch_is_closed(worker))

    @rule(worker=WORKERS, ending=st.sampled_from(["answers", "fails", "drains", "looks"]))
    def the_turn_ends(self, worker: str, ending: str) -> None:
        self.everywhere(lambda side: side.turn_ends(worker, ending))

    @rule()
    def the_lease_runs_out_and_somebody_looks(self) -> None:
        self.everywhere(Side.lose_the_worker)

    @rule()
    def the_platform_takes_what_is_due(self) -> None:
        self.everywhere(lambda side: side.world.shows_everything())

    # --- laws ---------------------------------------------------------------------------------------------

    @invariant()
    def the_laws_hold_and_all_say_the_same(self) -> None:
        if self.is_open:
            for side in self.sides:
                assert self.run(invariants.broken(side.database)) == []
            first, *others = [self.run(said_by(side.world)) for side in self.sides]
            for table, rows in first.items():
                assert [other[table] for other in others] == [rows] * len(others), table

    def teardown(self) -> None:
        try:
            if self.is_open:
                self.everywhere(Side.come_to_rest)
                for side in self.sides:
                    assert self.run(invariants.broken(side.database, at_rest=True)) == []
                self.the_laws_hold_and_all_say_the_same()
                self.everywhere(Side.close)
        finally:
            self.loop.close()
            for side in self.sides:
                drop(side.url)
            self.folder.cleanup()


async def said_by(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that a database says, but for times and for the names that each makes up for itself."""
    rows = {table: await world.rows(table) for table in t.metadata.sorted_tables if table is not t.claims}
    names: dict[Any, str] = {row.id: f"turn {row.number}" for row in rows[t.turns]}
    names |= {row.id: f"card of {names[row.turn_id]}" for row in rows[t.cards]}
    names |= {row.id: f"event {row.position}" for row in rows[t.transcript]}
    numbers = {row.seq: number for number, row in enumerate(rows[t.inbox])}

    def plain(column: Column[Any], value: Any) -> Any:
        if column.name in {"seq", "inbox_seq", "read_up_to"}:
            return numbers.get(value, value)
        if isinstance(value, list):
            value = TIME_OF_DAY.sub("", repr(value))
        if isinstance(value, str):
            for name, said in names.items():
                value = value.replace(name, said)
        return value

    return {
        table.name: sorted(
            (tuple(plain(c, row._mapping[c]) for c in table.c if not is_told_apart(c)) for row in found),
            key=repr,
        )
        for table, found in rows.items()
    }


TIME_OF_DAY = re.compile(r' at="[0-9:]+Z"')

MADE_UP = frozenset({t.outbox.c.id, t.outbox.c.number, t.requests.c.id})


def is_told_apart(column: Column[Any]) -> bool:
    """Whether two databases to which the same happened may differ in it."""
    return isinstance(column.type, Double) or column in MADE_UP


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=8,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

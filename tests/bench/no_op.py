"""A worker whose turns do nothing: a model that has answered at once, no tools, no platform."""

from __future__ import annotations

import asyncio

from bot.flow.bells import Bells
from bot.flow.turn_loop import Limits, Surroundings
from bot.flow.worker import Worker, WorkLimits
from bot.measures import Measures
from core.arrivals import Arrival, AuthorRole, Source, Thread
from core.generation import Generated, GenerationOutcome, ModelRequest, StopReason
from core.history import Text, assistant
from core.policy import policy
from core.reasons import Reason
from core.usage import Usage
from storage import decisions, inbox
from storage.engine import Database
from tests.bot.flow.ports import NoTools

MAX_TURNS = 16
"""The program's own default."""

FILLED_AT_ONCE = 100


class NoOpGeneration:
    """A request that is answered at once."""

    usage = Usage(100, 7, cost_usd=0.001)
    doing = ""

    async def run(self) -> GenerationOutcome:
        return Generated(assistant(Text("It is the deploy.")), StopReason.END, self.usage, "no-op")


class NoOpModel:
    """A model that needs no time."""

    name = "no-op"

    def open(self, request: ModelRequest) -> NoOpGeneration:
        return NoOpGeneration()


class Counted(Measures):
    """The program's measures, and word of when so many turns have settled."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._left = expected
        self.all_settled = asyncio.Event()

    def settled(self, reason: Reason) -> None:
        super().settled(reason)
        assert reason is Reason.COMPLETED, reason
        self._left -= 1
        if self._left == 0:
            self.all_settled.set()


async def fill(database: Database, count: int, run: str) -> None:
    """So many new threads, in each a question that waits for its turn."""
    asked, rules = [question(number, run) for number in range(count)], policy()
    for first in range(0, count, FILLED_AT_ONCE):
        for stored in await database.write(inbox.ingest, asked[first : first + FILLED_AT_ONCE]):
            assert stored.seq is not None
            await database.write(
                decisions.decide, stored.seq, rules, role=AuthorRole.INITIATOR, author_name="Ana A."
            )


def question(number: int, run: str) -> Arrival:
    """A mention that founds a thread."""
    name = f"{run}.{number:06d}"
    return Arrival(
        thread=Thread("slack", "T0BENCH001", "C0INC00001", name),
        key=f"slack:C0INC00001:{name}",
        source=Source.MENTION,
        author_id="U0ANA00001",
        text=f"why is checkout slow, number {number}?",
        message_ref=name,
        sent_at=0.0,
        may_open=True,
    )


def no_op_worker(database: Database, measures: Measures) -> Worker:
    """The real worker; whatever it shows would be shown by others."""
    around = Surroundings(
        database=database,
        bells=Bells(),
        model=NoOpModel(),
        tools=NoTools(),
        instructions="You are Watchkeeper.",
        redact=lambda text: text,
        limits=Limits(poll_s=1, turn_limit_s=3600, retry_for_s=180, card_interval_s=3),
        worker="bench",
        draining=lambda: False,
        measures=measures,
    )
    limits = WorkLimits(max_turns=MAX_TURNS, lease_s=15, gather_s=1, resume_within_s=3600)
    return Worker(around, None, limits)  # type: ignore[arg-type]  # threads that we founded need no platform

"""Bugs to plant: each is one that a run must catch, else its silence means nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast


def plant(name: str) -> None:
    """Plant the bug of this name; none when there is no name."""
    if name:
        PLANTS[name]()


def _acknowledge_first() -> None:
    """An event is acknowledged, and stored a moment later."""
    from bot.flow.accept import Acceptor  # noqa: PLC0415

    accept, under_way = Acceptor.accept, set()

    async def accepted(self: Acceptor, incoming: Any) -> None:
        async def store() -> None:
            await asyncio.sleep(0.1)
            await accept(self, incoming)

        under_way.add(asyncio.create_task(store()))

    Acceptor.accept = accepted  # type: ignore[method-assign]


def _begin_unmarked() -> None:
    """A side effect is sent without being marked as started."""
    from storage import steps  # noqa: PLC0415

    async def begin(*_: Any) -> None:
        return

    steps.begin = begin  # type: ignore[assignment]


def _run_side_effects_again() -> None:
    """A side effect that was started by a dead turn is run again."""
    from core import resume  # noqa: PLC0415
    from core.resume import CallState, Resumption  # noqa: PLC0415
    from core.tools import ToolClass  # noqa: PLC0415

    table = cast("dict[tuple[ToolClass, CallState], Resumption]", resume.RESUMPTION)
    table[ToolClass.SIDE_EFFECT, CallState.STARTED] = Resumption.RUN_AGAIN
    _begin_unmarked()
    _commit_as_started()


def _commit_as_started() -> None:
    """Every call counts as started once it is committed."""
    from core.resume import CallState  # noqa: PLC0415
    from storage import steps  # noqa: PLC0415

    row = steps._call_row

    def call_row(*args: Any, **more: Any) -> dict[str, Any]:
        return {**row(*args, **more), "state": CallState.STARTED, "attempts": 1}

    steps._call_row = call_row


def _settle_without_release() -> None:
    """A settle leaves the card as it is, and so does the sweep that would find it."""
    from storage import cards  # noqa: PLC0415

    want = cards.want

    async def wanted(tx: Any, turn_id: str, *, urgent: bool = False) -> None:
        if not urgent:
            await want(tx, turn_id)

    async def swept(*_: Any) -> int:
        return 0

    cards.want, cards.sweep = wanted, swept  # type: ignore[assignment]


def _post_without_looking() -> None:
    """After a post whose answer was lost, it is posted again without looking for it."""
    from bot.flow.deliver import Deliverer  # noqa: PLC0415

    async def look(self: Deliverer, row: Any, done: int) -> int:
        return done

    Deliverer._look = look  # type: ignore[method-assign]


def _tear_transactions() -> None:
    """What is written with a transcript's message is committed after it, in a transaction of its own."""
    from storage import transcripts  # noqa: PLC0415

    insert = transcripts.insert

    async def inserted(tx: Any, *args: Any) -> Any:
        said = await insert(tx, *args)
        for statement in ("COMMIT", "BEGIN IMMEDIATE", "SAVEPOINT member"):
            await tx.exec_driver_sql(statement)
        return said

    transcripts.insert = inserted  # type: ignore[assignment]


def _forget_to_resume() -> None:
    """What was cut or lost is not gone on with."""
    from storage import settlements  # noqa: PLC0415

    settlements.goes_on = lambda reason: False  # type: ignore[attr-defined]


def _skip_the_fence() -> None:
    """A worker whose lease has moved on may write; it looks at no clock and at no token."""
    from bot.flow.leases import Lease, Leases  # noqa: PLC0415
    from storage import fence, settlements, signals, steps  # noqa: PLC0415
    from storage.errors import Fenced  # noqa: PLC0415

    init, held = Leases.__init__, signals.first_held

    async def first_held(*args: Any) -> Any:
        try:
            return await held(*args)
        except Fenced:
            return None

    def deaf(self: Leases, database: Any, lease_s: float, lost: Any) -> None:
        init(self, database, lease_s, lambda _: None)

    Leases.__init__ = deaf  # type: ignore[method-assign]
    Lease.is_over = property(lambda self: False)  # type: ignore[method-assign, assignment]

    async def pass_through(tx: Any, shown: Any) -> Any:
        return await fence.lock(tx, shown.conversation_id)

    for reader in (signals, steps):
        reader.first_held = first_held  # type: ignore[attr-defined]
    for module in (fence, settlements, steps):
        module.pass_through = pass_through  # type: ignore[attr-defined]


PLANTS: Mapping[str, Callable[[], None]] = {
    "acknowledge first": _acknowledge_first,
    "begin unmarked": _begin_unmarked,
    "run side effects again": _run_side_effects_again,
    "settle without release": _settle_without_release,
    "post without looking": _post_without_looking,
    "tear transactions": _tear_transactions,
    "forget to resume": _forget_to_resume,
    "skip the fence": _skip_the_fence,
}

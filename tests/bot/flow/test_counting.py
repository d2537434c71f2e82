"""What the flow gives up, loses or finds dead is counted once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from bot.errors import Closed
from bot.flow.bells import Bells
from bot.flow.claiming import Claims
from bot.flow.deliver import Deliverer
from bot.flow.keep_cards import CardKeeper
from bot.flow.reap import Reaper
from bot.flow.receipts import ReceiptKeeper
from bot.measures import Measures
from bot.ports import AboutToSend, Post
from core.arrivals import Thread
from core.card import Card
from storage import outbox
from storage.engine import Database
from tests.bot.flow.ports import SilentModel, surroundings, worker_on
from tests.storage.world import World


class ClosedPlace:
    """A platform whose channel takes nothing from us any more."""

    async def card_slot(self, thread: Thread, ref: str | None, *, urgent: bool) -> None:
        """There is always room."""

    async def show_card(self, thread: Thread, ref: str | None, card: Card) -> str:
        raise Closed("chat.postMessage: is_archived", "is_archived")

    async def post(self, thread: Thread, post: Post, about_to_send: AboutToSend) -> str:
        await about_to_send()
        raise Closed("chat.postMessage: is_archived", "is_archived")

    async def set_receipt(self, thread: Thread, ref: str, receipt: str | None, previous: str | None) -> None:
        raise Closed("reactions.add: is_archived", "is_archived")

    def split(self, text: str) -> list[str]:
        return [text]


def count(measures: Measures, name: str, **labels: str) -> float | None:
    return measures.registry.get_sample_value(f"watchkeeper_{name}_total", labels)


async def until_counted(
    work: Coroutine[Any, Any, None], measures: Measures, name: str, **labels: str
) -> None:
    """Let the work go on until it is counted, and a little longer: it might be counted again."""
    task = asyncio.create_task(work)
    async with asyncio.timeout(10):
        while not count(measures, name, **labels):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert count(measures, name, **labels) == 1


@pytest.mark.parametrize("kind", ["answer", "chart"])
async def test_a_post_that_is_given_up_is_counted_by_its_kind(database: Database, kind: str) -> None:
    world, measures, platform = World(database), Measures(), ClosedPlace()
    await world.hears()
    await database.write(outbox.queue, world.id, kind=kind, once="x", text="hm", turn_id=None)
    deliverer = Deliverer(database, Bells(), platform, Claims(database, "w1"), measures)  # type: ignore[arg-type]
    await until_counted(deliverer.run(), measures, "given_up", kind=kind)


async def test_a_card_that_is_given_up_is_counted(database: Database) -> None:
    world, measures, platform = World(database), Measures(), ClosedPlace()
    await world.begins()
    claims = Claims(database, "w1")
    keeper = CardKeeper(
        database,
        Bells(),
        platform,  # type: ignore[arg-type]
        claims,
        min_interval_s=0.0,
        measures=measures,
    )
    await until_counted(keeper.run(), measures, "given_up", kind="card")


async def test_a_receipt_that_is_given_up_is_counted(database: Database) -> None:
    world, measures, platform = World(database), Measures(), ClosedPlace()
    await world.says()
    keeper = ReceiptKeeper(database, Bells(), platform, Claims(database, "w1"), measures)  # type: ignore[arg-type]
    await until_counted(keeper.run(), measures, "given_up", kind="receipt")


async def test_a_dead_turn_is_counted_by_the_reason_of_its_settle(database: Database) -> None:
    world, measures = World(database), Measures()
    await world.begins()
    await world.loses_its_worker()
    reaper = Reaper(database, Bells(), None, "w2", 3600.0, measures=measures)  # type: ignore[arg-type]
    for _ in range(2):
        await reaper.settle_dead_turns()
    assert count(measures, "turns_settled", reason="stale") == 1


async def test_a_turn_that_was_taken_over_is_a_lease_lost_and_none_that_runs(database: Database) -> None:
    world, model, measures = World(database), SilentModel(), Measures()
    await world.says()
    worker = worker_on(replace(surroundings(database, model), measures=measures))

    async def lose() -> None:
        loop = asyncio.create_task(worker.run())
        await model.asked.wait()
        assert measures.registry.get_sample_value("watchkeeper_turns_running") == 1
        await world.loses_its_worker()
        await world.reaps()
        await loop

    await until_counted(lose(), measures, "lease_losses")
    assert measures.registry.get_sample_value("watchkeeper_turns_running") == 0

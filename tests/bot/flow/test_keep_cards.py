"""A card is posted once, whatever becomes of the platform's answers."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from bot.errors import OutcomeUnknown, Temporary
from bot.flow.bells import Bells
from bot.flow.claiming import Claims
from bot.flow.keep_cards import CardKeeper
from bot.measures import Measures
from bot.ports import Found
from core.arrivals import Thread
from core.card import Card
from storage import tables as t
from storage.engine import Database
from tests.storage.world import World, booking


class Platform:
    """Takes cards; `troubles` are raised one after the other, a lost answer after the card was taken."""

    def __init__(self, *, show: list[Exception] | None = None, find: list[Exception] | None = None) -> None:
        self.posted: dict[str, Card] = {}
        self.trouble = {"show": show or [], "find": find or []}

    async def card_slot(self, thread: Thread, ref: str | None, *, urgent: bool) -> None:
        """There is always room."""

    async def show_card(self, thread: Thread, ref: str | None, card: Card) -> str:
        trouble = self.trouble["show"].pop(0) if self.trouble["show"] else None
        if isinstance(trouble, Temporary) and not isinstance(trouble, OutcomeUnknown):
            raise trouble
        ref = ref or f"ref {len(self.posted) + 1}"
        self.posted[ref] = card
        if trouble is not None:
            raise trouble
        return ref

    async def find(self, thread: Thread, since: float) -> list[Found]:
        if self.trouble["find"]:
            raise self.trouble["find"].pop(0)
        return [
            Found(ref, "watchkeeper_card", {"turn_id": card.turn_id}) for ref, card in self.posted.items()
        ]

    async def delete(self, thread: Thread, ref: str) -> None:
        del self.posted[ref]


def keeper_on(database: Database, platform: Platform, measures: Measures) -> CardKeeper:
    claims = Claims(database, "w1")
    return CardKeeper(
        database,
        Bells(),
        platform,  # type: ignore[arg-type]
        claims,
        min_interval_s=0.0,
        measures=measures,
    )


async def kept(database: Database, platform: Platform) -> None:
    """Keep cards until the released state has been taken."""
    task = asyncio.create_task(keeper_on(database, platform, Measures()).run())
    world = World(database)
    async with asyncio.timeout(10):
        while (await world.one(t.settlements)).card_released_at is None:
            await asyncio.sleep(0.02)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


LOST = "the answer was lost"


@pytest.mark.parametrize(
    "platform",
    [
        Platform(),
        Platform(show=[Temporary("busy", retry_after_s=0.01)]),
        Platform(show=[OutcomeUnknown(LOST)]),
        Platform(show=[OutcomeUnknown(LOST)], find=[Temporary("busy", retry_after_s=0.01)]),
    ],
    ids=["no trouble", "busy", "answer lost", "answer lost and busy when asked"],
)
async def test_the_thread_has_one_card_and_it_is_released(database: Database, platform: Platform) -> None:
    world = World(database)
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    await kept(database, platform)
    [card] = platform.posted.values()
    assert card.turn_id == turn.fence.turn_id
    assert card.headline == "Answered"


async def test_a_release_is_measured_from_the_settle_until_the_platform_took_it(database: Database) -> None:
    world, measures = World(database), Measures()
    turn = await world.begins()
    await world.settles(turn)
    await world.change(t.settlements, {"turn_id": turn.fence.turn_id}, settled_at=await world.now() - 30)
    task = asyncio.create_task(
        keeper_on(database, Platform(show=[Temporary("not now", 0.1)]), measures).run()
    )
    lag = "watchkeeper_card_lag_seconds"
    async with asyncio.timeout(10):
        while measures.registry.get_sample_value(f"{lag}_count") == 0:
            await asyncio.sleep(0.02)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert measures.registry.get_sample_value(f"{lag}_count") == 1
    assert measures.registry.get_sample_value(f"{lag}_sum") == pytest.approx(30, abs=5)

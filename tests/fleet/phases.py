"""In which phase of the work a fault strikes; the seed chooses the moment in it, and with it the victim."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.fleet.load import Happening, Load
from tests.fleet.member import Member


class Phase(StrEnum):
    """What the victim is at."""

    IDLE = "idle"
    STREAMING = "model streams"
    TOOLS = "tools run"
    SETTLE = "settles"
    CARD = "shows a card"


@dataclass(frozen=True, slots=True)
class Choice:
    """By which happening the moment is chosen, up to which one, and how long after it at most."""

    happening: Happening
    up_to: int
    after_s: float


CHOICES: Mapping[Phase, Choice] = {
    Phase.STREAMING: Choice(Happening.EVENT, 45, 0.0),
    Phase.TOOLS: Choice(Happening.HELD, 6, 0.05),
    Phase.SETTLE: Choice(Happening.FINAL, 3, 0.06),
    Phase.CARD: Choice(Happening.CARD, 8, 0.02),
}
"""Idle has no row: the fault strikes before anybody has written."""


async def moment(phase: Phase, load: Load, chance: random.Random) -> Member:
    """Wait for the moment; returns the victim."""
    choice = CHOICES.get(phase)
    if choice is None:
        return chance.choice(load.fleet.running)
    victim = await load.noticed.until(choice.happening, chance.randint(1, choice.up_to))
    if choice.after_s:
        await asyncio.sleep(chance.uniform(0, choice.after_s))
    return victim

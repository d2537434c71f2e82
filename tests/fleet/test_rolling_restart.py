"""Three processes under load are replaced one after the other, and nobody notices."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

from tests.fleet import laws
from tests.fleet.fleet import Fleet
from tests.fleet.load import Load
from tests.fleet.run import logs_of, running, until_rest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fleet"), pytest.mark.timeout(240)]

EVERY_S = 0.7
"""A new incident comes so often, from before the first SIGTERM until the last replacement is ready."""


async def people(load: Load, chance: random.Random, done: asyncio.Event) -> None:
    """New incidents until it is done; every other one with a steer."""
    async with asyncio.TaskGroup() as writing:
        number = 0
        while not done.is_set():
            number += 1
            writing.create_task(load.incident(number))
            await asyncio.sleep(chance.uniform(0, 2 * EVERY_S))


async def replace_all(fleet: Fleet) -> list[int]:
    """SIGTERM to each of the first three, with a replacement started beside it; returns their exit codes."""
    codes = []
    for old in fleet.members[:3]:
        new = fleet.add()
        old.process.send_signal(signal.SIGTERM)
        codes.append(await old.process.wait())
        await fleet.until_ready(new)
    return codes


async def test_a_rolling_restart_under_load_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(4)
    async with running(tmp_path, chance) as (fleet, load):
        done = asyncio.Event()
        writing = asyncio.create_task(people(load, chance, done))
        await load.noticed.until(next(iter(load.noticed.by_whom)), 30)
        codes = await replace_all(fleet)
        done.set()
        await writing
        seen = await until_rest(fleet, load, within_s=90)
        assert not laws.broken(seen), "\n".join([*laws.broken(seen), logs_of(fleet)])
        assert codes == [0, 0, 0]
        reasons = [record["reason"] for record in seen.settles]
        assert "drained" in reasons, "no turn was under way at any SIGTERM"
        assert "stale" not in reasons, "a turn was left to its lease"
        assert reasons.count("completed") >= len({one.incident for one in seen.written})

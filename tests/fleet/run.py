"""One run of one cell: a fleet, a load, one strike at one moment, rest, and the judgement."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from tests.fleet import laws
from tests.fleet.evidence import gather, recoveries
from tests.fleet.faults import Fault, Struck
from tests.fleet.fleet import Arrangement, Fleet
from tests.fleet.laws import Evidence
from tests.fleet.load import Load
from tests.fleet.phases import Phase, moment

REST_WITHIN_S = 45.0
LOOK_EVERY_S = 0.2
NEW_WORDS_WITHIN_S = 0.3


@dataclass
class Outcome:
    """What became of one run."""

    fault: str
    phase: Phase
    seed: int
    broken: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    lost: int = 0
    twice: int = 0
    completed: int = 0
    recovery_s: list[float] = field(default_factory=list)
    took_s: float = 0.0
    logs: str = ""

    @property
    def failed(self) -> bool:
        """Whether a law was broken, a struck turn went on too late, or nothing came to its end at all."""
        return bool(self.broken) or bool(self.late) or self.completed == 0

    def __str__(self) -> str:
        times = ", ".join(f"{seconds:.2f}" for seconds in self.recovery_s) or "none ran"
        verdict = "; ".join([*self.broken, *self.late]) or ("ok" if self.completed else "nothing completed")
        return (
            f"{self.fault}, {self.phase}, seed {self.seed}: {verdict} "
            f"({self.completed} completed, went on after {times} s, {self.took_s:.0f} s in all)"
        )


@asynccontextmanager
async def running(
    folder: Path, chance: random.Random, arrangement: Arrangement | None = None, incidents: int = 4
) -> AsyncIterator[tuple[Fleet, Load]]:
    """Three processes at work, and a load that nobody plays yet."""
    async with Fleet(folder, chance, arrangement) as fleet:
        await fleet.start()
        load = Load(fleet, chance, incidents)
        load.install()
        beside = [asyncio.create_task(load.holds()), asyncio.create_task(load.watching())]
        try:
            yield fleet, load
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


async def until_rest(
    fleet: Fleet, load: Load, struck: Struck | None = None, within_s: float = REST_WITHIN_S
) -> Evidence:
    """Wait until every law holds; returns the evidence as it stands then, or when patience has ended."""
    ends = time.monotonic() + within_s
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if fleet.slack.live_cards() and time.monotonic() < ends:
            continue
        seen = await gather(fleet, load, struck)
        if not laws.broken(seen) or time.monotonic() >= ends or laws.beyond_repair(seen):
            return seen


async def run(fault: Fault, phase: Phase, seed: int) -> Outcome:
    """One run."""
    chance = random.Random(f"{fault.name} {phase} {seed}")
    folder = Path(mkdtemp(prefix="fleet-"))
    outcome = Outcome(fault.name, phase, seed)
    began = time.monotonic()
    try:
        async with running(folder, chance, fault.arrangement) as (fleet, load):
            try:
                await _strike_and_judge(fault, load, chance, outcome)
            except (TimeoutError, AssertionError) as error:
                outcome.broken.append(f"the run failed: {error!r}")
            if outcome.failed:
                outcome.logs = logs_of(fleet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.took_s = time.monotonic() - began
    return outcome


async def _strike_and_judge(fault: Fault, load: Load, chance: random.Random, outcome: Outcome) -> None:
    fleet, phase = load.fleet, outcome.phase
    playing = None if phase is Phase.IDLE else asyncio.create_task(load.play())
    struck = Struck(fleet, await moment(phase, load, chance), chance)
    striking = asyncio.create_task(fault.strike(struck))
    if playing is None:
        playing = asyncio.create_task(load.play(NEW_WORDS_WITHIN_S))
    await asyncio.gather(striking, playing)
    seen = await until_rest(fleet, load, struck)
    if fault.exits_with is not None:
        seen.exits.append((str(struck.victim), struck.victim.process.returncode, fault.exits_with))
    outcome.broken += laws.broken(seen)
    outcome.lost = len(laws.broken(seen, laws.LOST))
    outcome.twice = len(laws.broken(seen, laws.TWICE))
    outcome.completed = sum(record["reason"] == "completed" for record in seen.settles)
    found = await recoveries(fleet, struck, of_one=fault.of_one)
    outcome.recovery_s = [one.seconds for one in found]
    outcome.late = [
        f"{one.turn} went on after {one.seconds:.2f} s, not within {fault.within_s:g}"
        for one in found
        if one.seconds > fault.within_s
    ]


def logs_of(fleet: Fleet, most: int = 20_000) -> str:
    """What the processes logged, newest last, and what stood in Slack."""
    parts = [f"=== {member}\n{member.log.read_text(errors='replace')[-most:]}" for member in fleet.members]
    return "\n".join([*parts, fleet.slack.dump()])

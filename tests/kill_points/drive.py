"""Drives one run: strikes, starts again whatever ended, and waits until everything has come to rest."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from tests.kill_points import checks, points
from tests.kill_points.points import Fault, Kind, Life, Plan, Point, Strike
from tests.kill_points.scenario import Analysis
from tests.kill_points.world import Store, World
from tests.stories.processes import Watchkeeper
from tests.stories.telling import ANSWER

STUCK_AFTER_S = 20.0
"""Without anything happening for so long it never comes to rest: no limit, lease or pause is longer."""
REST_WITHIN_S = 120.0
"""However busy the machine is."""
HANGS_AT_MOST_S = 15.0
STANDS_STILL_S = 0.3
FROZEN_FOR_S = 8.5
"""Longer than a lease and what it takes to notice its end."""
AWAKE_FOR_S = 1.0
"""So long one that wakes is watched at least."""
STARTS = 8
LOOK_EVERY_S = 0.05


@dataclass
class Outcome:
    """What became of one run."""

    strikes: tuple[Strike, ...]
    faults: list[str] = field(default_factory=list)
    struck: int = 0
    helped: bool = False
    """Whether a hang had to be ended with SIGKILL."""
    took_s: float = 0.0
    codes: list[int] = field(default_factory=list)
    passed: list[Point] = field(default_factory=list)
    log: str = ""

    @property
    def reached(self) -> bool:
        """Whether every strike met its point."""
        return self.struck == len(self.strikes)

    def __str__(self) -> str:
        what = ", then ".join(map(str, self.strikes)) or "undisturbed"
        return f"{what}: {'; '.join(self.faults) or 'ok'} (exit codes {self.codes}, {self.took_s:.1f} s)"


class Run:
    """One analysis from the mention to rest, with its strikes: one in each life at most."""

    def __init__(self, world: World, strikes: Sequence[Strike], plant: str, stuck_after_s: float) -> None:
        self._world = world
        self._stuck_after_s = stuck_after_s
        self._strikes = {strike.point.life: strike for strike in strikes}
        self._plant = plant
        self._analysis = Analysis(world)
        self._plans: list[Plan] = []
        self._somebody_is_frozen = False
        self.outcome = Outcome(tuple(strikes))

    async def run(self) -> Outcome:
        """Drive it to rest and check it."""
        began = time.monotonic()
        self._analysis.install()
        keeping = asyncio.create_task(self._keep_running())
        playing = asyncio.create_task(self._analysis.play())
        try:
            await self._until_rest(keeping, playing)
        finally:
            for task in (keeping, playing):
                task.cancel()
            await asyncio.gather(keeping, playing, return_exceptions=True)
        self.outcome.faults += await self._faults()
        self.outcome.took_s = time.monotonic() - began
        for plan in self._plans:
            self.outcome.passed += points.passed(plan.passed)
            self.outcome.struck += points.has_struck(plan.passed)
        if self.outcome.faults:
            self.outcome.log = self._world.stderr.read_text(errors="replace")
        return self.outcome

    async def _until_rest(self, keeping: asyncio.Task[None], playing: asyncio.Task[None]) -> None:
        began = moved = time.monotonic()
        seen = 0
        while not (playing.done() and await self._is_well()):
            await asyncio.sleep(LOOK_EVERY_S)
            now, happened = time.monotonic(), self._happened()
            if happened > seen or not self._analysis.thread:
                seen, moved = happened, now
            if keeping.done():
                self.outcome.faults.append(f"nothing runs any more: {keeping.exception()}")
                return
            if now - moved > self._patience_s or now - began > REST_WITHIN_S:
                self.outcome.faults.append(f"it did not come to rest within {now - began:.0f} s")
                return
        if playing.exception() is not None:
            self.outcome.faults.append(f"the script failed: {playing.exception()}")

    def _happened(self) -> int:
        """How much the test servers and we have seen happen so far."""
        world = self._world
        return len(world.slack.calls) + len(world.model.requests) + len(self._plans)

    @property
    def _patience_s(self) -> float:
        return self._stuck_after_s + (HANGS_AT_MOST_S if self._hangs else 0.0)

    async def _is_well(self) -> bool:
        slack = self._world.slack
        if (
            self._somebody_is_frozen or not self._world.posts(ANSWER) or slack.live_cards()
        ):  # seen at once, without the database
            return False
        return not await self._faults()

    async def _faults(self) -> list[str]:
        froze = any(strike.fault is Fault.FREEZE for strike in self.outcome.strikes)
        return await checks.faults(self._world, self._analysis, somebody_froze=froze)

    @property
    def _hangs(self) -> bool:
        return any(strike.fault is Fault.HANG for strike in self.outcome.strikes)

    # --- processes ----------------------------------------------------------------------------------------

    async def _keep_running(self) -> None:
        life = Life.FIRST
        for _ in range(STARTS):
            plan, process = self._begin(life)
            helping = asyncio.create_task(self._help(plan, process))
            try:
                self.outcome.codes.append(await process.wait())
            finally:
                helping.cancel()
            self._world.slack.cut_sockets()
            if points.has_struck(plan.passed):
                life = Life.RECOVERY
            elif self._analysis.drained.is_set():
                life = Life.RESUMED
        raise AssertionError(f"started {STARTS} times")

    def _begin(self, life: Life) -> tuple[Plan, Watchkeeper]:
        number = len(self._plans) + 1
        strike = self._strikes.pop(life, None)
        path = self._world.folder / f"passed.{number}"
        plan = Plan(life, path, self._world.black_hole, strike, self._plant)
        self._plans.append(plan)
        return plan, self._world.begin(plan)

    async def _help(self, plan: Plan, process: Watchkeeper) -> None:
        """What somebody else has to do about a strike: an orchestrator, or whoever wakes the frozen."""
        if plan.strike is None or plan.strike.fault not in (Fault.HANG, Fault.FREEZE):
            return
        while not points.has_struck(plan.passed):
            await asyncio.sleep(LOOK_EVERY_S)
        if plan.strike.fault is Fault.FREEZE:
            self._somebody_is_frozen = True
            self._begin(Life.RECOVERY)
            await asyncio.sleep(FROZEN_FOR_S)
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(AWAKE_FOR_S)
            self._somebody_is_frozen = False
            return
        all_stands = plan.strike.point.kind is not Kind.CALL and self._world.settings.database_url.startswith(
            "sqlite"
        )
        await asyncio.sleep(STANDS_STILL_S if all_stands else HANGS_AT_MOST_S)
        self.outcome.helped = True
        process.kill()


async def drive(
    store: Store, *strikes: Strike, plant: str = "", stuck_after_s: float = STUCK_AFTER_S
) -> Outcome:
    """One run in a world of its own."""
    folder = Path(mkdtemp(prefix="kill-point-"))
    try:
        url = await store.prepare(folder)
        async with World(folder, url) as world:
            return await Run(world, strikes, plant, stuck_after_s).run()
    finally:
        await store.forget(folder)
        shutil.rmtree(folder, ignore_errors=True)

"""Turns claimed, run with a no-op model and settled a second, beside Procrastinate's no-op jobs.

One process each, in turns, on the same Postgres with `fsync` on; what they work on is there before the clock
starts. No platform on either side: our cards and answers are queued and nobody posts them. Both log warnings
only. Then the same turns on SQLite.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import procrastinate
import pytest
import structlog

from storage import schema
from storage.engine import Database
from storage.postgres_engine import POOL_SIZE
from tests.bench.no_op import MAX_TURNS, Counted, fill, no_op_worker
from tests.bench.rig import at_least, line_of, program
from tests.servers.postgres import PostgresServer
from tests.storage.fresh import driven

TURNS, ROUNDS = 500, 5
CONCURRENCY = 20  # of Procrastinate: more or fewer were slower, its pool holds as many connections
RATIO_AIM, POSTGRES_AIM, SQLITE_AIM, SQLITE_GROUPED_AIM = 1.0, 300.0, 80.0, 150.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one process did."""

    count: int
    seconds: float
    own_cpu_s: float
    server_cpu_s: float = 0.0

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    def __str__(self) -> str:
        own, server = (1000 * cpu / self.count for cpu in (self.own_cpu_s, self.server_cpu_s))
        return f"{self.per_second:.0f}/s (CPU {own:.1f} + {server:.1f} ms)"


# --- what runs in processes of their own ----------------------------------------------------------------


async def measured(work: Callable[[], Awaitable[None]]) -> None:
    """Say that all is ready, wait for the word, work, say how long it took."""
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began, cpu = time.perf_counter(), time.process_time()
    await work()
    print(json.dumps([time.perf_counter() - began, time.process_time() - cpu]), flush=True)


def run_turns(url: str, count: int) -> None:
    """Ours: claim, start, run and settle so many turns."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

    async def run() -> None:
        database = await Database.open(url)
        await fill(database, count, uuid4().hex[:8])
        measures = Counted(count)
        worker = no_op_worker(database, measures)

        async def work() -> None:
            working = asyncio.create_task(worker.run())
            await measures.all_settled.wait()
            working.cancel()

        await measured(work)
        await database.close()

    asyncio.run(run())


def run_jobs(url: str, count: int, concurrency: int) -> None:
    """Procrastinate: fetch, run and finish so many jobs, as its pages show it."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=concurrency, max_size=concurrency)
    app = procrastinate.App(connector=connector)

    @app.task
    async def nothing() -> None: ...

    async def run() -> None:
        async with app.open_async():
            await nothing.batch_defer_async(*({} for _ in range(count)))
            await measured(lambda: app.run_worker_async(concurrency=concurrency, wait=False))

    asyncio.run(run())


# --- what drives them -----------------------------------------------------------------------------------


def one_round(call: str, count: int, server_cpu: Callable[[], float] = lambda: 0.0) -> Round:
    """One process from its start to its end; only its work is measured."""
    with program("-c", f"from tests.bench.bench_fleet_turns import *; {call}") as process:
        assert line_of(process) == "ready"
        before = server_cpu()
        assert process.stdin is not None
        process.stdin.write("go\n")
        seconds, own_cpu_s = json.loads(line_of(process))
        return Round(count, seconds, own_cpu_s, server_cpu() - before)


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server that waits for the disk at every commit."""
    server = PostgresServer(settings={}).start()
    try:
        yield server
    finally:
        server.close()


def tell(name: str, rounds: Sequence[Round]) -> float:
    """The raw rounds and the median of a second."""
    median = statistics.median(one.per_second for one in rounds)
    print(f"  {name + ':':<14} median {median:.0f}/s; " + " | ".join(map(str, rounds)))
    return median


@pytest.mark.timeout(600)
def test_turns_beside_procrastinates_jobs() -> None:
    with postgres() as server:
        ours_url = asyncio.run(server.create("ours"))
        asyncio.run(schema.upgrade(driven(ours_url)))
        jobs_url = asyncio.run(server.create("jobs"))
        asyncio.run(procrastinate_schema(jobs_url))
        sides = {
            "procrastinate": f"run_jobs({jobs_url!r}, {TURNS}, {CONCURRENCY})",
            "ours": f"run_turns({driven(ours_url)!r}, {TURNS})",
        }
        rounds: dict[str, list[Round]] = {name: [] for name in sides}
        for name in itertools.chain(*itertools.repeat(sides, ROUNDS + 1)):
            rounds[name].append(one_round(sides[name], TURNS, server.cpu_s))
    print(f"\n{TURNS} a round, in turns, the first of each left out; CPU a piece: own process + Postgres")
    print(
        f"  Procrastinate's concurrency and pool {CONCURRENCY}; our max_turns {MAX_TURNS}, pool {POOL_SIZE}"
    )
    jobs, turns = (tell(name, rounds[name][1:]) for name in sides)
    print(" ", at_least("turns by jobs", turns / jobs, RATIO_AIM))
    print(" ", at_least("turns on Postgres", turns, POSTGRES_AIM, "/s"))


async def procrastinate_schema(url: str) -> None:
    """Make its tables."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


@pytest.mark.timeout(600)
def test_turns_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'watchkeeper.db'}"
    asyncio.run(schema.upgrade(url))
    rounds = [one_round(f"run_turns({url!r}, {TURNS})", TURNS) for _ in range(ROUNDS + 1)]
    print(f"\n{TURNS} a round, the first left out; synchronous=FULL")
    turns = tell("ours", rounds[1:])
    print(" ", at_least("turns on SQLite", turns, SQLITE_AIM, "/s"))
    print(" ", at_least("turns on SQLite, grouped commits", turns, SQLITE_GROUPED_AIM, "/s"))

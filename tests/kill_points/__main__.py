"""`python -m tests.kill_points`: every fault at every point of the analysis, and a crash after a crash.

Prints what failed as it fails, then the table; `--document` writes the page of docs.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import logging
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kill_points import campaign, table
from tests.kill_points.drive import Outcome
from tests.kill_points.points import Fault, Strike
from tests.kill_points.world import STORES, Store

Runs = list[tuple[Strike, ...]]


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill_points", description=__doc__)
    parser.add_argument("--database", choices=STORES, action="append", help="on which; both when not said")
    parser.add_argument("--faults", default="", help='those with these words: "SIGKILL", "error", "hang"')
    parser.add_argument("--points", default="", help="those with these words in their names")
    parser.add_argument("--one-in", type=int, default=1, help="a fixed sample")
    parser.add_argument(
        "--second", choices=["also", "only", "not"], default="also", help="crashes in a recovery"
    )
    parser.add_argument("--at-a-time", type=int, default=campaign.AT_A_TIME)
    parser.add_argument("--document", type=Path, help="write the tables there")
    parser.add_argument("--logs", action="store_true", help="show the processes' logs of what failed")
    return parser.parse_args()


async def planned(store: Store, asked: argparse.Namespace) -> dict[str, Runs]:
    """The runs by the heading of their table."""
    found: dict[str, Runs] = {}
    if asked.second != "only":
        points = [point for point in await campaign.learn(store) if asked.points in str(point)]
        faults = [fault for fault in Fault if asked.faults in fault]
        found["One fault"] = [(strike,) for strike in campaign.strikes(store, points, faults)]
    if asked.second != "not":
        found["A second SIGKILL while recovering from the first"] = await campaign.second_crashes(store)
    return {heading: campaign.sample(runs, asked.one_in) for heading, runs in found.items()}


async def on(store: Store, asked: argparse.Namespace) -> list[tuple[str, list[Outcome], float]]:
    """Drive everything on one database."""

    def tell(outcome: Outcome) -> None:
        if outcome.faults or not outcome.reached:
            print(f"{table.verdict(outcome)}: {outcome}", flush=True)
        if outcome.faults and asked.logs:
            print(outcome.log)

    done = []
    for heading, runs in (await planned(store, asked)).items():
        print(f"{store.name}, {heading.lower()}: {len(runs)} runs", flush=True)
        began = time.monotonic()
        outcomes = await campaign.drive_all(store, runs, tell, asked.at_a_time)
        done.append((f"{heading}, {store.name}", outcomes, time.monotonic() - began))
        print(f"{table.table(outcomes)}\n{table.summary(outcomes)}", flush=True)
    return done


async def main() -> int:
    """Run what was asked for; 1 when anything failed."""
    asked = options()
    logging.disable(logging.CRITICAL)  # the test servers' words about clients that died
    done: list[tuple[str, list[Outcome], float]] = []
    with TemporaryDirectory() as folder:
        for name in asked.database or STORES:
            store = STORES[name](Path(folder))
            try:
                done += await on(store, asked)
            finally:
                store.close()
    if asked.document:
        today = datetime.datetime.now(datetime.UTC).date()
        asked.document.write_text(table.page(done, today, sys.argv[1:]))
    return 1 if any(table.failures(outcomes) for _, outcomes, _ in done) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""`python -m tests.fleet`: the matrix of faults, run by run, then its table."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.fleet import table
from tests.fleet.faults import FAULTS, Fault
from tests.fleet.phases import Phase
from tests.fleet.run import Outcome, run


def cells(words: str, phases: list[str]) -> list[tuple[Fault, Phase]]:
    """The cells whose fault holds these words, in these phases."""
    return [
        (fault, phase)
        for fault in FAULTS
        if words.lower() in fault.name.lower()
        for phase in fault.phases
        if not phases or phase.name.lower() in phases
    ]


async def run_all(chosen: list[tuple[Fault, Phase]], seeds: range, logs: Path | None) -> list[Outcome]:
    """One run after the other: they share the machine's two cores as it is."""
    outcomes = []
    for fault, phase in chosen:
        for seed in seeds:
            outcome = await run(fault, phase, seed)
            outcomes.append(outcome)
            print(outcome, flush=True)
            if outcome.failed and logs is not None:
                logs.mkdir(exist_ok=True)
                name = f"{fault.name}-{phase}-{seed}".replace(" ", "_").replace("'", "")
                (logs / f"{name}.log").write_text(f"{outcome}\n{outcome.logs}")
    return outcomes


def main() -> int:
    """Read the arguments, run, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each cell")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--fault", default="", help="only faults whose name holds these words")
    parser.add_argument("--phase", action="append", default=[], help="only this phase (idle, streaming, …)")
    parser.add_argument("--write", type=Path, help="write the page here")
    parser.add_argument("--logs", type=Path, help="keep what failing runs logged in this folder")
    options = parser.parse_args()
    chosen = cells(options.fault, options.phase)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    outcomes = asyncio.run(run_all(chosen, seeds, options.logs))
    print(f"\n{table.table(outcomes)}\n\n{table.summary(outcomes)}")
    if options.write is not None:
        options.write.write_text(table.page(outcomes, datetime.now(UTC).date()))
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

"""The table of a matrix run, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tests.fleet.faults import FAULTS
from tests.fleet.fleet import LEASE_S, SHORT_LEASE_S
from tests.fleet.phases import Phase
from tests.fleet.run import Outcome

HEAD = (
    "| fault | phase | runs | ok | completed | turns struck | went on after p50 | p99 | max | limit | lost "
    "| twice |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)
PAGE = """# Matrix of faults

Three real `watchkeeper serve` processes on a real Postgres and Valkey, under a load of four incidents with
read-only, idempotent and side-effecting calls and steers. One fault strikes at one moment, which the seed
chooses; then everything must come to rest and every law must hold (`tests/fleet/laws.py`,
`tests/invariants.py`). The lease is {lease:g} s, and {short:g} s where only its end helps ("past the lease").

* *Went on after*: seconds from the fault to the next model request or the settle record of each turn that it
  struck; a later one than the limit fails the run.
* *Lost*: messages, analyses or releases that never came to their end.
* *Twice*: side effects, answers, settle records or words that came twice.
* A run in which nothing completes fails.

Run of {day} with `make matrix`: {summary}.

{table}
"""


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each cell that ran."""
    lines = [HEAD]
    for fault in FAULTS:
        for phase in Phase:
            some = [one for one in outcomes if (one.fault, one.phase) == (fault.name, phase)]
            if some:
                before, after = _numbers(some)
                lines.append(f"| {fault.name} | {phase} | {before} | {fault.within_s:g} | {after} |")
    return "\n".join(lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line about all of them."""
    failed = sum(one.failed for one in outcomes)
    times = sorted(seconds for one in outcomes for seconds in one.recovery_s)
    took = f"; struck turns went on after {_quantile(times, 0.5)} s (median), {_quantile(times, 1)} s at most"
    return (
        f"{len(outcomes)} runs, {len(outcomes) - failed} ok, {failed} failed; "
        f"{sum(one.completed for one in outcomes)} analyses completed, "
        f"{sum(one.lost for one in outcomes)} lost, {sum(one.twice for one in outcomes)} twice"
        f"{took if times else ''}"
    )


def page(outcomes: Sequence[Outcome], day: date) -> str:
    """The page of the last run."""
    return PAGE.format(
        lease=LEASE_S, short=SHORT_LEASE_S, day=day, summary=summary(outcomes), table=table(outcomes)
    )


def _numbers(some: Sequence[Outcome]) -> tuple[str, str]:
    times = sorted(seconds for one in some for seconds in one.recovery_s)
    first = [
        str(len(some)),
        str(sum(not one.failed for one in some)),
        str(sum(one.completed for one in some)),
        str(len(times)),
        *(_quantile(times, share) for share in (0.5, 0.99, 1)),
    ]
    last = [str(sum(one.lost for one in some)), str(sum(one.twice for one in some))]
    return " | ".join(first), " | ".join(last)


def _quantile(times: Sequence[float], share: float) -> str:
    if not times:
        return "–"
    return f"{times[min(len(times) - 1, int(share * len(times)))]:.2f}"

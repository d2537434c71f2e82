"""The table of a campaign: points by kind, faults by column, and whatever failed by name."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

from tests.kill_points.drive import Outcome
from tests.kill_points.points import FAULTS_OF, Fault, Kind

HEAD = "| point | " + " | ".join(Fault) + " |\n|---|" + "---:|" * len(Fault)

WHY_NOT = {
    (Kind.STATEMENT, Fault.KILL_AFTER): "as before the next",
    (Kind.CALL, Fault.FREEZE): "may still be seen",
}


def verdict(outcome: Outcome) -> str:
    """One word."""
    if outcome.faults:
        return "failed"
    return "ok" if outcome.reached else "not reached"


def cell(outcomes: Sequence[Outcome]) -> str:
    """How many were well, and how many were not."""
    counts = Counter(verdict(outcome) for outcome in outcomes)
    others = [f"{counts[word]} {word}" for word in ("failed", "not reached") if counts[word]]
    return ", ".join([f"{counts['ok']} ok", *others])


def table(outcomes: Sequence[Outcome]) -> str:
    """Points by kind and fault, of the last strike of each run."""
    by_cell: dict[tuple[Kind, Fault], list[Outcome]] = {}
    for outcome in outcomes:
        last = outcome.strikes[-1]
        by_cell.setdefault((last.point.kind, last.fault), []).append(outcome)
    lines = [HEAD]
    for kind in Kind:
        cells = []
        for fault in Fault:
            some = by_cell.get((kind, fault), [])
            cells.append(cell(some) if some else "–" if fault in FAULTS_OF[kind] else WHY_NOT[kind, fault])
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line about all of them."""
    times = sorted(outcome.took_s for outcome in outcomes) or [0.0]
    counts = Counter(verdict(outcome) for outcome in outcomes)
    helped = sum(outcome.helped for outcome in outcomes)
    return (
        f"{len(outcomes)} runs: {counts['ok']} ok, {counts['failed']} failed, {counts['not reached']} did "
        f"not reach their point; {helped} hangs were ended with SIGKILL; from mention to rest median "
        f"{times[len(times) // 2]:.1f} s, longest {times[-1]:.1f} s"
    )


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """Each run that failed, with what is wrong."""
    return [str(outcome) for outcome in outcomes if outcome.faults]


PAGE = """# Kill points

What `make kill-points` found last, on {today}; this page is written by it and not by hand.

One scripted analysis: a mention; a batch with a read-only, an idempotent and a side-effecting call; a steer
while they run; a second batch with a side effect; a SIGTERM in it; the answer from the next process. Every
statement, every COMMIT and every call to the outside that the processes make is a point. At each point, in a
run of its own, one fault:

* **SIGKILL before** and **after**; after a statement is before the next, so statements have only the former;
* **error before** and **error after**: the connection is lost, and with it the reply (on Postgres really);
* **SIGSTOP before** a statement or COMMIT, on Postgres: another process takes over, and then the first wakes;
* **hang**: nobody answers. Slack, the model and the tool server are swapped for a port that takes connections
  and says nothing, so our own time limits must end it. On Postgres the server sleeps until its limit for
  statements. On SQLite there is nobody to wait for: the whole process stands still until it is killed.

Then processes are started again as an orchestrator would, until all has come to rest, and everything is
checked: the laws of the database (`tests/invariants.py`), the rules of Slack and of the model as the test
servers hold them, that what was acknowledged is stored, that each side effect began at most once and what the
model is told of it is true, that nothing stands twice in the thread, that every release was seen, and that
everything people wrote was read (`tests/kill_points/checks.py`). Time limits that nothing configures are
shorter here (`tests/kill_points/child.py`).

A point is *not reached* when the same thing happened in another order or less often in that run than in the
one the points were learned from; it was tried twice. Reads that come by time, and renewals, are points the
first two times in a process only: they leave nothing behind.

The arguments were `{arguments}`; {sampled}.
{tables}
"""


def page(
    done: Sequence[tuple[str, Sequence[Outcome], float]], today: datetime.date, arguments: Sequence[str]
) -> str:
    """The page of docs about these outcomes: heading, outcomes, and how long they took together."""
    tables = "".join(
        f"\n## {heading}\n\n{table(outcomes)}\n\n{summary(outcomes)}; {seconds / 60:.0f} min in all.\n"
        + "".join(f"\n* {words}" for words in failures(outcomes))
        for heading, outcomes, seconds in done
    )
    given = [words for words in arguments if not words.endswith(".md") and words != "--document"]
    sampled = "a sample, as they say" if "--one-in" in given else "every one of these points"
    return PAGE.format(today=today, arguments=" ".join(given) or "none", sampled=sampled, tables=tables)

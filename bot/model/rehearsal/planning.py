"""Which checks to make next: first the scope, then what people want looked at, then the hottest lead.

Rule 1: independent checks go out together, five at most.
Rule 2: what was answered is not asked again; what failed is asked in another way; what was cut short, again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.model.rehearsal.catalogue import FIXED, about
from bot.model.rehearsal.checks import Check, open_way
from bot.model.rehearsal.hypotheses import TABLE, Hypothesis, Judged
from bot.model.rehearsal.investigation import Investigation
from bot.model.rehearsal.transcript import Ending
from core.history import Json

MOST_CALLS, FEWEST_CALLS = 5, 3
MOST_STEPS = 7
MOST_REPEATS = 2  # of a call that was cut short
LEADING = 3  # points from which on a hypothesis is worth a closer look
SCOPE = ("alerts", "latency", "errors", "deploys", "complaints")
OF_TIME = ("mean", "spent", "asked", "pools", "pressure", "certificates")
OF_ERRORS = ("failing", "kinds", "certificates", "pools", "mean", "spent", "pressure", "asked")
FILLING = ("traffic", "kinds", "cores", "failing")

_RUNBOOK = re.compile(r"^(\S+?): .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Planned:
    """A call to make."""

    check: Check
    way: int
    tool: str
    input: dict[str, Json]


def planned(state: Investigation) -> list[Planned]:
    """The next batch; empty when nothing is left that would tell more, or when it is enough."""
    if state.transcript.steps >= MOST_STEPS:
        return []
    batch = _take(state, _wished(state), MOST_CALLS)
    if batch and len(batch) < FEWEST_CALLS:
        taken = {each.check.key for each in batch}
        filling = (FIXED[key] for key in FILLING if key not in taken)
        batch += _take(state, filling, FEWEST_CALLS - len(batch))
    return batch


def unavailable(state: Investigation) -> list[Check]:
    """Checks that a full investigation makes and that cannot be made, or failed in every way."""
    usual = dict.fromkeys([*SCOPE, *OF_TIME])
    return [
        FIXED[key] for key in usual if not state.picture.answered(key) and _next(state, FIXED[key]) is None
    ]


def _take(state: Investigation, checks: Iterator[Check] | Sequence[Check], most: int) -> list[Planned]:
    found: dict[str, Planned] = {}
    for check in checks:
        if len(found) == most:
            break
        if check.key not in found and (call := _next(state, check)) is not None:
            found[check.key] = call
    return list(found.values())


def _next(state: Investigation, check: Check) -> Planned | None:
    """The way that a check is to be tried now, if there is one."""
    if state.picture.answered(check.key):
        return None
    tries = state.picture.tries(check.key)
    since = max((each.way + 1 for each in tries if each.ending is Ending.FAILED), default=0)
    if sum(each.ending is Ending.CUT_SHORT for each in tries) > MOST_REPEATS:
        return None
    found = open_way(check, state.specs, since)
    return Planned(check, *found) if found else None


def _wished(state: Investigation) -> Iterator[Check]:
    """All checks that are worth making now, the most urgent first."""
    course, first = state.course, state.transcript.steps == 0 and not state.transcript.made
    if first:
        yield from (FIXED[key] for key in SCOPE[: 4 if course.wanted else 5])
    for hypothesis in course.wanted:
        yield from _closer(state, hypothesis)
    for service in course.focus:
        yield about("logs", service)
        if not state.picture.changes("latency", service=service):
            yield from (FIXED["queries"], FIXED["spent"])
    yield from (about("probe", address) for address in course.addresses)
    if first:
        return
    for judged in _leading(state)[:1]:
        yield from _written(state, judged.hypothesis)
        yield from _closer(state, judged.hypothesis)
    needed = {key for each, row in TABLE.items() if each not in course.dropped for key in row.tells}
    order = OF_ERRORS if state.picture.fails_more_than_it_lags else OF_TIME
    yield from (
        FIXED[key] for key in (*SCOPE, *order) if key in needed or key in (*SCOPE, "failing", "kinds")
    )
    for judged in _leading(state)[1:]:
        yield from _closer(state, judged.hypothesis)


def _leading(state: Investigation) -> list[Judged]:
    """Hypotheses with enough for them to look closer; none is looked at that a person wants left out."""
    dropped = state.course.dropped
    return [each for each in state.ranked if each.points >= LEADING and each.hypothesis not in dropped]


def _closer(state: Investigation, hypothesis: Hypothesis) -> Iterator[Check]:
    """What tells whether it holds, and what shows how it works."""
    row = TABLE[hypothesis]
    yield from (FIXED[key] for key in (*row.tells, *row.shows))
    if hypothesis is Hypothesis.DEPLOY and (commit := state.suspected_commit):
        yield about("deploy", commit)
    service = state.witness or state.place_of(hypothesis)
    if service and hypothesis is not Hypothesis.NOTHING:
        yield about("logs", service)


def _written(state: Investigation, hypothesis: Hypothesis) -> Iterator[Check]:
    """What people wrote down about it."""
    search = about("runbooks", TABLE[hypothesis].runbook)
    yield search
    found = _RUNBOOK.findall(state.picture.text(search.key).partition("the best first:")[2])
    if found:
        yield about("runbook", found[0])

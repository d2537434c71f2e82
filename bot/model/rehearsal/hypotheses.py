"""The hypotheses, and what speaks for and against each: one row, one judge.

A sign is worth points; what shows the mechanism weighs most, what only coincides weighs little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.model.rehearsal import judges
from bot.model.rehearsal.judges import Sign
from bot.model.rehearsal.origin import Origin, origin
from bot.model.rehearsal.picture import Picture


class Hypothesis(StrEnum):
    """What can be wrong, as far as these rules know; the value is for people."""

    DEPLOY = "a bad deploy"
    POOL = "an exhausted connection pool"
    DEPENDENCY = "a slow dependency"
    CERTIFICATE = "an expired certificate"
    NEIGHBOUR = "a noisy neighbour"
    NOTHING = "nothing wrong"


@dataclass(frozen=True, slots=True)
class Row:
    """How it is judged, which checks tell, which show the mechanism, and what to look up in the runbooks."""

    judge: Callable[[Picture, Origin | None], list[Sign]]
    tells: Sequence[str]
    shows: Sequence[str]
    runbook: str


TABLE: Mapping[Hypothesis, Row] = {
    Hypothesis.DEPLOY: Row(
        judges.deploy, ("deploys", "mean", "spent", "asked"), ("cores",), "roll back a deploy"
    ),
    Hypothesis.POOL: Row(
        judges.pool, ("pools",), ("pools_before", "waiting", "held", "queries"), "connection pool exhausted"
    ),
    Hypothesis.DEPENDENCY: Row(
        judges.dependency, ("mean", "spent", "asked"), ("queries", "failing"), "slow dependency"
    ),
    Hypothesis.CERTIFICATE: Row(judges.certificate, ("certificates",), ("kinds",), "certificate expired"),
    Hypothesis.NEIGHBOUR: Row(
        judges.neighbour,
        ("pressure",),
        ("pressure_before", "workloads", "cores"),
        "noisy neighbour on a machine",
    ),
    Hypothesis.NOTHING: Row(
        judges.nothing, ("latency", "errors"), ("traffic", "kinds"), "alert without a symptom"
    ),
}

ENOUGH = 4  # points that a verdict needs
AHEAD = 2  # and so many more than any other
RULED_OUT = -3


@dataclass(frozen=True, slots=True)
class Judged:
    """One hypothesis with its signs."""

    hypothesis: Hypothesis
    signs: tuple[Sign, ...]

    @property
    def points(self) -> int:
        """What all signs come to."""
        return sum(sign.points for sign in self.signs)

    @property
    def is_ruled_out(self) -> bool:
        """Whether the evidence speaks clearly against it."""
        return self.points <= RULED_OUT

    @property
    def decisive(self) -> Sign | None:
        """The sign that says most about it, for or against."""
        return max(self.signs, key=lambda sign: abs(sign.points), default=None)


def judged(picture: Picture) -> list[Judged]:
    """Every hypothesis, the best supported first."""
    source = origin(picture)
    found = [Judged(each, tuple(row.judge(picture, source))) for each, row in TABLE.items()]
    return sorted(found, key=lambda each: -each.points)


def decided(ranked: Sequence[Judged]) -> Judged | None:
    """The hypothesis for which the evidence decides, if it does."""
    best, second = ranked[0], ranked[1]
    return best if best.points >= ENOUGH and best.points - second.points >= AHEAD else None

"""The words of a run: what a point is, what may happen at it, and how both are written down.

A point is one occurrence of one named thing that the process does: "turns.start: insert turns #1",
"steps.commit: COMMIT #2", "slack chat.update #3", "tool probe__restart #1". Names come from the code as it
runs, so new code brings new points and nothing has to be kept in step.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What is done at a point."""

    STATEMENT = "statement"
    COMMIT = "commit"
    CALL = "outside call"


class Fault(StrEnum):
    """What happens there."""

    KILL_BEFORE = "SIGKILL before"
    KILL_AFTER = "SIGKILL after"
    ERROR_BEFORE = "error before"
    ERROR_AFTER = "error after"
    HANG = "hang"
    FREEZE = "SIGSTOP before"


KILLS = (Fault.KILL_BEFORE, Fault.KILL_AFTER)
FAULTS_OF: dict[Kind, tuple[Fault, ...]] = {
    # Killed after a statement is killed before the next one, or before the commit: nothing lies between.
    Kind.STATEMENT: tuple(fault for fault in Fault if fault is not Fault.KILL_AFTER),
    Kind.COMMIT: tuple(Fault),
    # Who was frozen before a call and wakes may still show that one call: that is no fault.
    Kind.CALL: tuple(fault for fault in Fault if fault is not Fault.FREEZE),
}


class Life(StrEnum):
    """Which process of a run: the first, the one after the drain, the one after a strike."""

    FIRST = "first"
    RESUMED = "resumed"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`-th time that a process of this life does the named thing."""

    life: Life
    kind: Kind
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.life}: {self.name} #{self.number}"


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault at one point."""

    point: Point
    fault: Fault

    def __str__(self) -> str:
        return f"{self.fault} at {self.point}"

    @property
    def lot(self) -> int:
        """A number from its name, the same in every run: samples are drawn by it."""
        return zlib.crc32(str(self).encode())


@dataclass(frozen=True, slots=True)
class Plan:
    """What one process is to meet: where it writes the points that it passed, and its strike if it has one.

    `black_hole` is a port that takes connections and never answers; `plant` names a bug to plant.
    """

    life: Life
    passed: Path
    black_hole: int
    strike: Strike | None = None
    plant: str = ""


STRUCK = "STRUCK"


def passed(path: Path) -> list[Point]:
    """The points that a process wrote down, in order."""
    points = []
    for line in _lines(path):
        mark, *rest = line.split("\t")
        if mark != STRUCK:
            kind, name, number = rest
            points.append(Point(Life(mark), Kind(kind), name, int(number)))
    return points


def has_struck(path: Path) -> bool:
    """Whether the process met its strike."""
    return any(line.startswith(STRUCK) for line in _lines(path))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []

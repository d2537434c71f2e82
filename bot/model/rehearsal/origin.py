"""Where it comes from: from the service that people feel down to the one that nothing below explains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.model.rehearsal.findings import Change
from bot.model.rehearsal.picture import LATER_S, SLOWER, Picture

EXPLAINS = 0.5  # a dependency that took over so much of the growth is where to look next
ASKS_MORE = 2.5
STEP_S = 0.02


class Where(StrEnum):
    """What the way down ended in."""

    ITSELF = "itself"  # the growth is the service's own
    ASKS_MORE = "asks more"  # the service asks a dependency more often for the same work
    DEPENDENCY = "dependency"  # a dependency without numbers of its own
    CALL = "call"  # calls to a dependency fail, and it does not see them


@dataclass(frozen=True, slots=True)
class Origin:
    """The end of the way down, the way itself, and what was measured there."""

    service: str
    where: Where
    path: tuple[str, ...]
    change: Change
    caller: str = ""
    since: str = ""


def origin(picture: Picture) -> Origin | None:
    """None when nothing got worse, or when the numbers to go by are not there."""
    if picture.fails_more_than_it_lags:
        return _of_errors(picture)
    return _of_time(picture)


def began(picture: Picture) -> str:
    """When the symptom made its biggest step: the worst series of those that got worse."""
    worst = picture.failing if picture.fails_more_than_it_lags else picture.slow
    return worst[0].at if worst else ""


def _of_time(picture: Picture) -> Origin | None:
    slow = [each for each in picture.changes("mean") if each.grew(SLOWER, STEP_S)]
    if not slow or not picture.has_facts("spent"):
        return None
    # The top is the slow one that no other slow one waits for.
    names = {each.labels.get("service", "") for each in slow}
    below = {each.labels.get("dependency", "") for each in picture.changes("spent") if each.rise >= STEP_S}
    tops = [each for each in slow if each.labels.get("service") not in below] or slow
    at = max(tops, key=lambda each: each.rise)
    path, caller = [at.labels.get("service", "")], ""
    while True:
        service = path[-1]
        most = _most(picture, "spent", service)
        if most is None or most.rise < EXPLAINS * at.rise:
            return _ended(picture, Where.ITSELF, path, at, caller)
        below_name = most.labels.get("dependency", "")
        asked = picture.change("asked", service=service, dependency=below_name)
        if asked is not None and asked.grew(ASKS_MORE, 1):
            return _ended(picture, Where.ASKS_MORE, path, asked, below_name)
        own = picture.change("mean", service=below_name)
        if own is None or below_name in path or below_name not in names:
            return _ended(picture, Where.DEPENDENCY, [*path, below_name], most, service)
        path.append(below_name)
        at, caller = own, service


def _of_errors(picture: Picture) -> Origin | None:
    if not picture.failing or not picture.has_facts("failing"):
        return None
    at, caller = picture.failing[0], ""
    path = [at.labels.get("service", "")]
    while True:
        most = _most(picture, "failing", path[-1])
        if most is None or most.now < max(EXPLAINS * at.now, 0.02):
            return _ended(picture, Where.ITSELF, path, at, caller)
        name = most.labels.get("dependency", "")
        own = picture.change("errors", service=name)
        if name in path or own is None or own.now < EXPLAINS * most.now:
            return _ended(picture, Where.CALL, [*path, name], most, path[-1])
        caller = path[-1]
        path.append(name)
        at = own


def _ended(picture: Picture, where: Where, path: list[str], change: Change, other: str) -> Origin:
    # The numbers at the end of the way are steadier than those that people feel at its beginning.
    return Origin(path[-1], where, tuple(path), change, other, change.at or began(picture))


def _most(picture: Picture, key: str, service: str) -> Change | None:
    """The dependency of a service that grew most."""
    known = picture.changes(key, service=service)
    return max(known, key=lambda each: each.rise if key == "spent" else each.now, default=None)


__all__ = ["LATER_S", "Origin", "Where", "began", "origin"]

"""One judge for each hypothesis: from the picture to signs for and against it. A missing fact is no sign."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.model.rehearsal.deploys import Deploy, seconds
from bot.model.rehearsal.findings import Change
from bot.model.rehearsal.origin import Origin, Where
from bot.model.rehearsal.picture import Picture
from bot.model.rehearsal.words import clock, count, listed, share, span_words, took

BEFORE_S, AFTER_S = 15 * 60, 3 * 60  # a deploy this near to the beginning may have to do with it
FULL, ROOMY = 0.95, 0.8
PRESSED, CALM = 0.25, 0.2
ALWAYS_FIRE = ("Watchdog", "InfoInhibitor", "DeadMansSwitch")


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that was seen: for a hypothesis (above zero) or against it, with the calls that show it."""

    points: int
    words: str
    calls: str = ""

    @property
    def line(self) -> str:
        """As an answer says it."""
        return f"{self.words}{self.calls}"


def deploy(picture: Picture, source: Origin | None) -> list[Sign]:
    """A deploy of the very service it comes from, just before it began, that changed what it does."""
    if source is None:
        return _no_origin(picture, "deploys", "no deploy is followed by a change of latency or errors")
    near = suspect(picture, source)
    if near is None:
        return _no_deploy(picture, source)
    signs: list[Sign] = []
    words = f"{near.name} went out at {clock(near.time)}, it began at {clock(source.since)}"
    signs.append(Sign(2, words, picture.cite("deploys", "latency")))
    if source.where is Where.ASKS_MORE:
        change = source.change
        words = (
            f"since then {source.service} asks {source.caller} {_change(change)} queries or calls a request"
        )
        signs.append(Sign(3, words, picture.cite("asked")))
    cores = picture.change("cores", service=source.service)
    if cores is not None and cores.grew(1.5, 0.1):
        words = f"{source.service} itself uses more of the processor: {_change(cores)} cores"
        signs.append(Sign(1, words, picture.cite("cores")))
    return signs


def suspect(picture: Picture, source: Origin | None) -> Deploy | None:
    """The last deploy of the service it comes from, if it is near to the beginning."""
    if source is None or not (at := seconds(source.since)):
        return None
    mine = [each for each in picture.deploys if each.service == source.service]
    return next((each for each in mine if at - BEFORE_S <= each.at <= at + AFTER_S), None)


def _no_deploy(picture: Picture, source: Origin) -> list[Sign]:
    if not picture.deploys:
        return []
    since, mine = clock(source.since), [each for each in picture.deploys if each.service == source.service]
    words = f"it comes from {source.service} and began at {since}"
    if mine:
        words += f"; the last deploy of {source.service} ({mine[0].name}) was at {clock(mine[0].time)}"
    else:
        others = [f"{each.name} at {clock(each.time)}" for each in picture.deploys[:2]]
        words += f"; {source.service} was not deployed, only {listed(others)}"
    return [Sign(-4, words, picture.cite("deploys", "latency", "errors", *_way(picture)))]


def pool(picture: Picture, source: Origin | None) -> list[Sign]:
    """A pool with nothing left, and somebody who holds on to connections."""
    pools = picture.changes("pools")
    if not pools:
        return []
    fullest = max(pools, key=lambda each: each.now)
    service = fullest.labels.get("service", "a service")
    if fullest.now < FULL:
        points = -4 if fullest.now < ROOMY else -1
        return [
            Sign(
                points,
                f"the fullest pool, {service}'s, is {share(fullest.now)} in use",
                picture.cite("pools"),
            )
        ]
    words = f"{service}'s connection pool is {share(fullest.now)} in use"
    words += _before(picture.change("pools_before", service=service), share)
    signs = [Sign(3, words, picture.cite("pools", "pools_before"))]
    waiting = picture.change("waiting", service=service)
    if waiting is not None and waiting.now >= 1:
        words = f"{count(waiting.now)} requests of {service} wait for a connection"
        signs.append(Sign(2, words, picture.cite("waiting")))
    held = picture.change("held", client=service)
    if held is not None and held.grew(2, 3):
        words = f"{service} holds {count(held.now)} sessions idle in a transaction{_before(held)}"
        signs.append(Sign(2, words, picture.cite("held")))
    queries = picture.changes("queries")
    if queries and not any(each.grew(1.5, 0.005) for each in queries):
        words = f"queries themselves take no longer ({_change(queries[0], took)})"
        signs.append(Sign(1, words, picture.cite("queries")))
    return signs + _said(picture, r"pool|no connection", 1)


def dependency(picture: Picture, source: Origin | None) -> list[Sign]:
    """A dependency that takes longer for the same number of calls, and no service that we see into."""
    if source is None:
        return _no_origin(picture, "spent", "requests spend no more time in any dependency than before")
    if source.where is Where.DEPENDENCY:
        change = source.change
        words = f"a request of {source.caller} spends {_change(change, took)} in {source.service}"
        signs = [Sign(3, words, picture.cite("spent"))]
        asked = picture.change("asked", service=source.caller, dependency=source.service)
        if asked is not None and not asked.grew(1.5, 0.2):
            words = f"{source.caller} asks it no more often ({_change(asked)} a request): each call is slower"
            signs.append(Sign(2, words, picture.cite("asked")))
        return signs + _dependency_failing(picture, source)
    if source.where is Where.CALL:
        words = f"calls to {source.service} fail at once, they are not slow"
        return [Sign(-3, words, picture.cite("failing", "latency"))]
    words = f"the growth ends in {source.service}: no dependency of it explains it"
    if source.where is Where.ASKS_MORE:
        words = f"{source.caller} is asked {_change(source.change)} times a request by {source.service}"
    return [Sign(-4, words, picture.cite(*_way(picture)))]


def _dependency_failing(picture: Picture, source: Origin) -> list[Sign]:
    failing = picture.change("failing", service=source.caller, dependency=source.service)
    if failing is None or failing.now < 0.005:
        return []
    words = f"{share(failing.now)} of the calls to {source.service} fail"
    return [Sign(1, words, picture.cite("failing"))]


def certificate(picture: Picture, source: Origin | None) -> list[Sign]:
    """A certificate past its end, and handshakes that fail."""
    signs: list[Sign] = []
    if ends := picture.changes("certificates"):
        first = min(ends, key=lambda each: each.now)
        host = first.labels.get("host") or first.labels.get("service") or "a host"
        if first.now > 0:
            words = f"the certificate that ends first, {host}'s, is good for {span_words(first.now)}"
            return [Sign(-4, words, picture.cite("certificates"))]
        words = f"the certificate of {host} ended {span_words(-first.now)} ago"
        signs.append(Sign(3, words, picture.cite("certificates")))
    tls = [each for each in picture.changes("kinds", kind="tls") if each.now >= 0.1]
    if tls:
        worst = max(tls, key=lambda each: each.now)
        words = f"{worst.labels.get('service', 'a caller')} counts {_change(worst)} TLS errors a second"
        signs.append(Sign(2, words, picture.cite("kinds")))
    if source is not None and source.where is Where.CALL:
        words = f"{share(source.change.now)} of {source.caller}'s calls to {source.service} fail"
        signs.append(Sign(1, words, picture.cite("failing")))
    return signs + _said(picture, r"certificate|x509|tls|handshake", 1)


def neighbour(picture: Picture, source: Origin | None) -> list[Sign]:
    """A service that waits for its processor, on a machine on which somebody else became busy."""
    pressed = picture.changes("pressure")
    if not pressed:
        return []
    most = max(pressed, key=lambda each: each.now)
    service, node = most.labels.get("service", "a service"), most.labels.get("node", "its machine")
    if most.now < PRESSED:
        points = -4 if most.now < CALM else -1
        words = f"no service waits for a processor: {service} most, {share(most.now)} of the time"
        return [Sign(points, words, picture.cite("pressure"))]
    words = f"{service} waits for a processor {share(most.now)} of the time on {node}"
    words += _before(picture.change("pressure_before", service=service, node=node), share)
    signs = [Sign(3, words, picture.cite("pressure", "pressure_before"))]
    others = [
        each for each in picture.changes("workloads", node=node) if each.labels.get("workload") != service
    ]
    busy = max(others, key=lambda each: each.rise, default=None)
    if busy is not None and busy.grew(1.5, 1.0):
        words = f"{busy.labels.get('workload')} on {node} uses {_change(busy)} cores"
        signs.append(Sign(2, words, picture.cite("workloads")))
    cores = picture.change("cores", service=service)
    if cores is not None and not cores.grew(1.3, 0.1):
        words = f"{service} itself uses no more ({_change(cores)} cores)"
        signs.append(Sign(1, words, picture.cite("cores")))
    return signs


def nothing(picture: Picture, source: Origin | None) -> list[Sign]:
    """Nothing got worse that was looked at."""
    if picture.slow or picture.failing:
        return _symptoms(picture)
    signs: list[Sign] = []
    for key, words, shown in (
        ("latency", "p99 of every service is as it was before", took),
        ("errors", "no service fails more requests than before", share),
    ):
        if series := picture.changes(key):
            worst = max(series, key=lambda each: each.now)
            told = f"{words} (the highest, {worst.labels.get('service')}: {_change(worst, shown)})"
            signs.append(Sign(2, told, picture.cite(key)))
    if len(signs) == 2 and picture.has_facts("spent") and source is None:
        signs.append(
            Sign(1, "requests spend their time where they always did", picture.cite("mean", "spent"))
        )
    if picture.answered("alerts"):
        signs.append(_firing(picture))
    return signs


def _firing(picture: Picture) -> Sign:
    firing = [each for each in picture.alerts if each.state == "firing" and each.name not in ALWAYS_FIRE]
    if not firing:
        return Sign(1, "no alert fires at the moment", picture.cite("alerts"))
    words = f"the alert {firing[0].name} fires since {clock(firing[0].since)}, maybe before all I compare"
    return Sign(-2, words, picture.cite("alerts"))


def _symptoms(picture: Picture) -> list[Sign]:
    signs: list[Sign] = []
    for worst in picture.failing[:1]:
        words = f"{share(worst.now)} of {worst.labels.get('service', 'a service')}'s requests fail"
        signs.append(Sign(-5, words + _before(worst, share), picture.cite("errors")))
    for worst in picture.slow[:1]:
        words = f"p99 of {worst.labels.get('service', 'a service')} went {_change(worst, took)}"
        signs.append(Sign(-5, words, picture.cite("latency")))
    return signs


def _no_origin(picture: Picture, key: str, words: str) -> list[Sign]:
    """Against what would have made something worse, when nothing got worse."""
    known = bool(picture.deploys) if key == "deploys" else picture.has_facts(key)
    calm = picture.has_facts("latency") and picture.has_facts("errors") and not picture.slow
    if not known or not calm or picture.failing:
        return []
    return [Sign(-3, words, picture.cite(key, "latency", "errors"))]


def _said(picture: Picture, pattern: str, points: int) -> list[Sign]:
    """What the logs say of it: the most frequent lines that hold such words."""
    wanted = re.compile(pattern, re.IGNORECASE)
    best: tuple[str, int, str] | None = None
    for key, each in picture.patterns():
        text = f"{each.words} {each.example.get('error', '')}"
        serious = each.level in ("warn", "error", "fatal") and wanted.search(text)
        if serious and (best is None or each.count > best[1]):
            error = each.example.get("error")
            best = (key, each.count, f"{each.words}{f': {error}' if error else ''}")
    if best is None or best[1] < 3:
        return []
    return [Sign(points, f"{best[1]} log lines say “{best[2][:120]}”", picture.cite(best[0]))]


def _way(picture: Picture) -> tuple[str, ...]:
    return ("failing",) if picture.fails_more_than_it_lags else ("mean", "spent", "asked")


def _before(change: Change | None, say: Callable[[float | None], str] = count) -> str:
    return f" ({say(change.before)} before)" if change is not None and change.before is not None else ""


def _change(change: Change, say: Callable[[float | None], str] = count) -> str:
    if change.before is None:
        return say(change.now)
    return f"{say(change.before)} → {say(change.now)}"

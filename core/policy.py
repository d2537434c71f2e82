"""The policy table: what a message does, by what it is, who wrote it, and whether a turn runs.

Rule 1: rules are read from the top and the first that matches decides; where none does, it is a denial.
Rule 2: configured rules stand before the built-in ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import product

from core.arrivals import PEOPLE_SOURCES, Addressed, AuthorRole, Marker, Source


class Effect(StrEnum):
    """What a message does. `context` is shown to the next request that happens anyway, and wakes nobody."""

    START = "start"
    STEER = "steer"
    QUEUE = "queue"
    CONTEXT = "context"
    STOP = "stop"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a decision depends on."""

    source: Source
    role: AuthorRole
    marker: Marker = Marker.NONE
    addressed: Addressed = Addressed.NOBODY
    running: bool = False
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row. What is empty or None matches anything; `channels` are patterns with `*`, `?` and `[…]`.

    `reason` is a sentence for the person who wrote; `silent` says that a refusal is not told to anybody.
    """

    name: str
    sources: frozenset[Source]
    roles: frozenset[AuthorRole]
    markers: frozenset[Marker]
    addressed: frozenset[Addressed]
    running: bool | None
    effect: Effect
    reason: str
    silent: bool = False
    channels: tuple[str, ...] = ()

    def matches(self, situation: Situation) -> bool:
        """Whether this rule speaks about the situation."""
        here = any(fnmatchcase(situation.channel, pattern) for pattern in self.channels or ("*",))
        return here and self.fits(situation)

    def fits(self, situation: Situation) -> bool:
        """Whether this rule speaks about the situation, whatever the channel."""
        return (
            (not self.sources or situation.source in self.sources)
            and (not self.roles or situation.role in self.roles)
            and (not self.markers or situation.marker in self.markers)
            and (not self.addressed or situation.addressed in self.addressed)
            and (self.running is None or self.running is situation.running)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in the order in which they are read."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided, by which rule, and why in words for people."""

    effect: Effect
    rule: str
    reason: str
    silent: bool = False


S, R, E = Source, AuthorRole, Effect
ANY: frozenset[Source] = frozenset()
TALK = frozenset({S.MENTION, S.THREAD_REPLY})
REPLY = frozenset({S.THREAD_REPLY})
STOPS = frozenset({S.STOP_REQUEST})
AUTOMATED = frozenset({S.ALERT, S.SCHEDULE})  # exist only where they are configured
OWN = frozenset({S.SUBAGENT_REPORT, S.SUBAGENT_QUESTION, S.ANSWER, S.JOB, S.NOTICE})
OUTSIDERS = frozenset({R.GUEST, R.EXTERNAL, R.DEACTIVATED})
CREW = frozenset({R.INITIATOR, R.RESPONDER, R.MEMBER})
BOT = frozenset({R.BOT})
MACHINES = frozenset({R.SYSTEM, R.BOT})
SYSTEM = frozenset({R.SYSTEM})
ANYONE: frozenset[AuthorRole] = frozenset()
LATER = frozenset({Marker.LATER})
ANYHOW: frozenset[Marker] = frozenset()
PERSON = frozenset({Addressed.PERSON})
ALL: frozenset[Addressed] = frozenset()
RUNNING, IDLE, ALWAYS = True, False, None

BUILT_IN: tuple[Rule, ...] = (
    #    name               sources         roles      markers addressed running  effect     reason
    Rule("outsiders",       ANY,            OUTSIDERS, ANYHOW, ALL,    ALWAYS,  E.DENY,
         "I only take requests from full members of this workspace, not from guests or other organisations."),
    Rule("bots",            PEOPLE_SOURCES, BOT,       ANYHOW, ALL,    ALWAYS,  E.DENY,
         "I don't take requests from other bots.", silent=True),
    Rule("side_talk",       REPLY,          ANYONE,    ANYHOW, PERSON, ALWAYS,  E.CONTEXT,
         "This is addressed to somebody else; I only read along."),
    Rule("later",           TALK,           CREW,      LATER,  ALL,    RUNNING, E.QUEUE,
         "You asked for later, so I take this up once the current work has ended."),
    Rule("people",          TALK,           CREW,      ANYHOW, ALL,    RUNNING, E.STEER,
         "You can steer me while I work, so I take this up at the next safe point."),
    Rule("people_idle",     TALK,           CREW,      ANYHOW, ALL,    IDLE,    E.START,
         "Nothing is running here, so I start on this."),
    Rule("stop",            STOPS,          CREW,      ANYHOW, ALL,    RUNNING, E.STOP,
         "You asked me to stop, so I stop at the next safe point."),
    Rule("stop_ended",      STOPS,          CREW,      ANYHOW, ALL,    IDLE,    E.DENY,
         "That work has already ended, so there is nothing to stop."),
    Rule("automation",      AUTOMATED,      MACHINES,  ANYHOW, ALL,    RUNNING, E.QUEUE,
         "Alerts and schedules wait until the current work has ended."),
    Rule("automation_idle", AUTOMATED,      MACHINES,  ANYHOW, ALL,    IDLE,    E.START,
         "A configured alert or schedule starts an analysis."),
    Rule("own_events",      OWN,            SYSTEM,    ANYHOW, ALL,    RUNNING, E.QUEUE,
         "News of my own work waits until the current turn has ended."),
    Rule("own_events_idle", OWN,            SYSTEM,    ANYHOW, ALL,    IDLE,    E.START,
         "News of my own work wakes me."),
)  # fmt: skip

DEFAULT = Verdict(Effect.DENY, "default", "No rule allows this.")


def decide(policy: Policy, situation: Situation) -> Verdict:
    """What a message does in this situation."""
    for rule in policy.rules:
        if rule.matches(situation):
            return Verdict(rule.effect, rule.name, rule.reason, rule.silent)
    return DEFAULT


def policy(extra_rules: Iterable[Rule] = ()) -> Policy:
    """The configured rules, named by their place, then the built-in ones; ValueError for a contradiction."""
    configured = [replace(rule, name=f"configured[{n}]") for n, rule in enumerate(extra_rules, start=1)]
    for rule in configured:
        if fault := contradiction(rule):
            raise ValueError(f"{rule.name}: {fault}")
    return Policy((*configured, *BUILT_IN))


def contradiction(rule: Rule) -> str | None:
    """Why this rule could never be honoured, or None when it can."""
    if rule.running is False and rule.effect in {Effect.STEER, Effect.STOP}:
        return f'effect "{rule.effect}" needs a running turn, but the rule holds only when idle'
    if rule.running is True and rule.effect is Effect.START:
        return 'effect "start" needs an idle conversation, but the rule holds only while a turn runs'
    return None


def situations() -> Iterator[Situation]:
    """All situations there are, channels apart."""
    for parts in product(Source, AuthorRole, Marker, Addressed, (True, False)):
        yield Situation(*parts)


def unreachable(policy: Policy) -> list[tuple[Rule, Rule]]:
    """Each rule that can never decide, and the earlier rule that takes most of its situations."""
    everything = list(situations())
    pairs = []
    for index, rule in enumerate(policy.rules):
        own = [(s, c) for s in everything if rule.fits(s) for c in rule.channels or ("*",)]
        takers = [_taker(policy.rules[:index], situation, channel) for situation, channel in own]
        if takers and None not in takers:
            pairs.append((rule, Counter(taker for taker in takers if taker).most_common(1)[0][0]))
    return pairs


def _taker(earlier: Iterable[Rule], situation: Situation, channel: str) -> Rule | None:
    takes = (r for r in earlier if r.fits(situation) and _covers(r.channels or ("*",), channel))
    return next(takes, None)


def _covers(wider: tuple[str, ...], narrower: str) -> bool:
    """Whether one of these patterns surely matches all that the other does; in doubt it does not."""
    plain = "[" not in narrower
    return any(
        pattern in {"*", narrower}
        or (plain and not set(pattern) & set("?[") and fnmatchcase(narrower, pattern))
        for pattern in wider
    )

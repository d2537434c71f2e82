"""What must hold after a run, over what the records say and what the test servers wrote down themselves.

Each law is one function over the evidence that names what breaks it; `broken` asks them all. The laws of the
database itself are in `tests/invariants.py`; what breaks them arrives here as part of the evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

GOES_ON = frozenset({"steered", "drained", "stale"})
SAME_CARD = frozenset({"drained", "stale"})
SIDE_EFFECTS = frozenset({"restart", "hold_write"})


class Row(NamedTuple):
    """One row that a turn wrote, as text."""

    turn: str
    where: str
    content: str


class Delivered(NamedTuple):
    """An event that Slack sent for what a person wrote, and whether it was acknowledged."""

    ts: str
    acked: bool


class Written(NamedTuple):
    """What a person wrote, and in which incident."""

    incident: int
    words: str
    thread: str


class TurnRow(NamedTuple):
    """A turn as the records have it."""

    id: str
    thread: str
    number: int
    worker: str
    resumes: str | None
    card: str | None


class CardShown(NamedTuple):
    """One version of a card message: when, which turn it named, in which state, and who sent it."""

    ts: str
    at: float
    turn: str
    state: str
    sender: str


@dataclass
class Evidence:
    """All that is known of a run once it is at rest."""

    written: list[Written] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    told: list[list[str]] = field(default_factory=list)
    begun: list[dict[str, Any]] = field(default_factory=list)
    turns: list[TurnRow] = field(default_factory=list)
    settles: list[dict[str, Any]] = field(default_factory=list)
    cards: list[CardShown] = field(default_factory=list)
    answers: list[tuple[str, str, int]] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    slack: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    exits: list[tuple[str, int | None, int]] = field(default_factory=list)
    zombie: str = ""
    woke_at: float | None = None
    rows_when_it_woke: list[Row] = field(default_factory=list)
    rows_at_rest: list[Row] = field(default_factory=list)


Law = Callable[[Evidence], list[str]]

# --- nothing lost -------------------------------------------------------------------------------------------


def what_is_acknowledged_is_stored(seen: Evidence) -> list[str]:
    """Slack was told that it was received only of what has its row."""
    stored = {key.rpartition(":")[2] for key in seen.stored}
    return [
        f"acknowledged and not stored: {one.ts}"
        for one in seen.delivered
        if one.acked and one.ts not in stored
    ]


def what_people_write_is_received(seen: Evidence) -> list[str]:
    """Every event was acknowledged in the end."""
    return [f"never acknowledged: {one.ts}" for one in seen.delivered if not one.acked]


def what_people_write_reaches_the_model(seen: Evidence) -> list[str]:
    """A request carried it."""
    return [one.words for one in seen.written if not any(_times(one.words, texts) for texts in seen.told)]


def every_analysis_completes(seen: Evidence) -> list[str]:
    """Each thread's turns go on until one completed; a later message may start another."""
    by_thread: dict[str, list[str]] = {}
    for record in seen.settles:
        by_thread.setdefault(str(record["thread"]), []).append(str(record["reason"]))
    found = []
    for thread in dict.fromkeys(one.thread for one in seen.written):
        reasons = by_thread.get(thread, [])
        if reasons[-1:] != ["completed"] or set(reasons) - GOES_ON - {"completed"}:
            found.append(f"{thread} ended {reasons}")
    return found


def every_turn_settles_once(seen: Evidence) -> list[str]:
    """Exactly one settle record for each turn, and none of a turn that never was."""
    counts = Counter(str(record["turn_id"]) for record in seen.settles)
    turns = {turn.id for turn in seen.turns}
    return [
        f"{turn} has {counts[turn]} settle records" for turn in turns | set(counts) if counts[turn] != 1
    ] + [f"{turn} was settled and never began" for turn in set(counts) - turns]


def no_card_is_left_live(seen: Evidence) -> list[str]:
    """Nothing claims to be in progress."""
    return [f"live card {ts}" for ts in seen.live]


def every_release_is_shown(seen: Evidence) -> list[str]:
    """Slack showed each turn that it ever showed as released, or a later turn on the same message."""
    last = {one.turn: one for one in sorted(seen.cards, key=_time)}
    newest = {one.ts: one for one in sorted(seen.cards, key=_time)}
    return [
        f"the release of {turn} was never shown"
        for turn, one in last.items()
        if one.state != "released" and newest[one.ts].turn == turn
    ]


# --- nothing twice ------------------------------------------------------------------------------------------


def nothing_is_told_twice(seen: Evidence) -> list[str]:
    """No request carries a person's words more than once."""
    return [
        f"told {_times(one.words, texts)} times: {one.words}"
        for one in seen.written
        for texts in seen.told
        if _times(one.words, texts) > 1
    ]


def a_side_effect_begins_once(seen: Evidence) -> list[str]:
    """By its call, and by what it does."""
    effects = [event for event in seen.begun if event["tool"] in SIDE_EFFECTS]
    by_call = (str(event["call_id"]) for event in effects)
    by_deed = (json.dumps([event["tool"], event["args"]], sort_keys=True) for event in effects)
    return [*_twice("side effect of call", by_call), *_twice("side effect", by_deed)]


def an_answer_stands_once(seen: Evidence) -> list[str]:
    """Each part of each answer is one message, and each completed turn has one."""
    completed = {str(record["turn_id"]) for record in seen.settles if record["reason"] == "completed"}
    answered = {turn for turn, _, _ in seen.answers}
    return [
        *_twice("answer", map(str, seen.answers)),
        *(f"{turn} was completed and has no answer" for turn in completed - answered),
        *(f"{turn} has an answer and was not completed" for turn in answered - completed),
    ]


# --- in order -----------------------------------------------------------------------------------------------


def a_card_is_never_live_again(seen: Evidence) -> list[str]:
    """For each turn live…, released; and when its message names a later turn, nothing of it comes after.

    One call of a process that was frozen while it was under way may arrive late.
    """
    again = _live_again(seen)
    late = [one for one in again if _woke(seen, one)]
    return [f"{one.turn} is live again on {one.ts}" for one in again if one not in late[:1]]


def a_zombie_shows_at_most_what_was_under_way(seen: Evidence) -> list[str]:
    """Of turns that others took over it sends one call at most once its lease is over."""
    taken = {row.turn for row in seen.rows_when_it_woke}
    shown = [one for one in seen.cards if one.turn in taken and one.state == "live" and _woke(seen, one)]
    return (
        [f"{seen.zombie} showed {len(shown)} times what was not its own any more"] if len(shown) > 1 else []
    )


def a_zombie_writes_nothing(seen: Evidence) -> list[str]:
    """The rows of the turns that others took over are the same at rest as when it woke."""
    before, after = set(seen.rows_when_it_woke), set(seen.rows_at_rest)
    taken = {row.turn for row in before}
    return [
        f"written after the takeover: {row.where} of {row.turn}"
        for row in after - before
        if row.turn in taken
    ] + [f"gone after the takeover: {row.where} of {row.turn}" for row in before - after]


def a_resumed_turn_goes_on_on_the_same_card(seen: Evidence) -> list[str]:
    """After `drained` or `stale` the successor's card is that of the turn which it resumes, in Slack too."""
    reasons = {str(record["turn_id"]): str(record["reason"]) for record in seen.settles}
    cards = {turn.id: turn.card for turn in seen.turns}
    shown: dict[str, set[str]] = {}
    for one in seen.cards:
        shown.setdefault(one.turn, set()).add(one.ts)
    found = []
    for turn in seen.turns:
        if turn.resumes is None or reasons.get(turn.resumes) not in SAME_CARD:
            continue
        before, after = shown.get(turn.resumes, set()), shown.get(turn.id, set())
        if cards.get(turn.resumes) != turn.card or (before and after and not before & after):
            found.append(f"{turn.id} resumes {turn.resumes} on another card")
    return found


def turns_follow_each_other(seen: Evidence) -> list[str]:
    """In each thread they are numbered from one without a gap."""
    by_thread: dict[str, list[int]] = {}
    for turn in seen.turns:
        by_thread.setdefault(turn.thread, []).append(turn.number)
    return [
        f"{thread}: {sorted(numbers)}"
        for thread, numbers in by_thread.items()
        if any(b != a + 1 for a, b in pairwise([0, *sorted(numbers)]))
    ]


# --- no rule broken -----------------------------------------------------------------------------------------


def slack_has_no_complaint(seen: Evidence) -> list[str]:
    """Neither about what was shown nor about how often it was called."""
    return seen.slack


def the_model_refuses_nothing(seen: Evidence) -> list[str]:
    """No request broke the provider's rules."""
    return [f"refused by the model: {one}" for one in seen.refused]


def the_records_are_sound(seen: Evidence) -> list[str]:
    """The laws of the database hold, those at rest too."""
    return seen.records


def nobody_is_surprised(seen: Evidence) -> list[str]:
    """No process logged an error that nobody had foreseen."""
    return seen.tracebacks


def who_ends_ends_as_promised(seen: Evidence) -> list[str]:
    """The exit codes are those of the contract."""
    return [f"{who} ended with {code}, not {wanted}" for who, code, wanted in seen.exits if code != wanted]


LOST: tuple[Law, ...] = (
    what_is_acknowledged_is_stored,
    what_people_write_is_received,
    what_people_write_reaches_the_model,
    every_analysis_completes,
    no_card_is_left_live,
    every_release_is_shown,
)
TWICE: tuple[Law, ...] = (
    nothing_is_told_twice,
    a_side_effect_begins_once,
    an_answer_stands_once,
    every_turn_settles_once,
)
OTHERS: tuple[Law, ...] = (
    a_card_is_never_live_again,
    a_zombie_shows_at_most_what_was_under_way,
    a_zombie_writes_nothing,
    a_resumed_turn_goes_on_on_the_same_card,
    turns_follow_each_other,
    slack_has_no_complaint,
    the_model_refuses_nothing,
    the_records_are_sound,
    nobody_is_surprised,
    who_ends_ends_as_promised,
)
LAWS = (*LOST, *TWICE, *OTHERS)

FOR_GOOD: tuple[Law, ...] = (a_side_effect_begins_once, a_card_is_never_live_again, the_model_refuses_nothing)
"""What was once broken stays so."""


def broken(seen: Evidence, laws: Iterable[Law] = LAWS) -> list[str]:
    """What breaks which law; empty when all hold."""
    return [f"{law.__name__}: {what}" for law in laws for what in law(seen)]


def beyond_repair(seen: Evidence) -> bool:
    """Whether something is wrong that no time can mend."""
    return bool(broken(seen, FOR_GOOD))


def _times(words: str, texts: list[str]) -> int:
    return sum(words in text for text in texts)


def _twice(what: str, found: Iterable[str]) -> list[str]:
    return [f"{what} {key} {n} times" for key, n in Counter(found).items() if n > 1]


def _time(one: CardShown) -> float:
    return one.at


def _woke(seen: Evidence, one: CardShown) -> bool:
    return seen.woke_at is not None and one.sender == seen.zombie and one.at >= seen.woke_at


def _live_again(seen: Evidence) -> list[CardShown]:
    over: set[str] = set()
    bearer: dict[str, str] = {}
    again = []
    for one in sorted(seen.cards, key=_time):
        if one.state == "live" and one.turn in over:
            again.append(one)
        if bearer.get(one.ts, one.turn) != one.turn:
            over.add(bearer[one.ts])
        if one.state == "released":
            over.add(one.turn)
        bearer[one.ts] = one.turn
    return again

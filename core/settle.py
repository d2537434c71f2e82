"""The endings of a turn: one constructor for each legal ending, demanding exactly the facts that it needs.

Rule 1: a cut is a named value; no ending is ever read out of an empty text.
Rule 2: an ending of the turn's own accord is `conditional`: it is refused when a steer or stop was decided
first.
Rule 3: when a turn is settled, a tombstone goes before its stamp, and its stamp before anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.history import Message
from core.reasons import Reason
from core.signals import STAMP, Held, Signal


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends.

    `message` is appended to the transcript (a final text, also one that a steer overtook);
    `discarded` says that a generation was thrown away for the cut;
    `cut_off` says that the text ended at the model's length limit;
    `cause` is why it failed, in one line;
    `note` is what the thread is told, None where the card says it all.
    """

    reason: Reason
    by: str | None = None
    message: Message | None = None
    note: str | None = None
    conditional: bool = False
    discarded: bool = False
    cut_off: bool = False
    cause: str | None = None


STOPPED = "Stopped. Nothing of this goes on; reply here to start again."


def completed(message: Message, *, cut_off: bool = False) -> Ending:
    """The model has said its last word, and nobody had asked for anything else."""
    return Ending(Reason.COMPLETED, message=message, conditional=True, cut_off=cut_off)


def empty() -> Ending:
    """The model ended without a word."""
    return Ending(
        Reason.EMPTY,
        note="The model ended without an answer. Reply here to try again, or add what it should look at.",
        conditional=True,
    )


def failed(cause: str) -> Ending:
    """Something that trying again by ourselves will not mend."""
    note = f"I could not finish: {cause}. Reply here to try again."
    return Ending(Reason.FAILED, cause=cause, note=note, conditional=True)


def lay_too_long(seconds: float) -> Ending:
    """The worker was lost so long ago that nobody counts on the work any more."""
    return failed(f"the worker was lost and this lay for {spoken(seconds)}, so I did not take it up again")


def spoken(seconds: float) -> str:
    """A span of time in words for people."""
    if seconds < 90:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"


def cut(held: Held, *, discarded: bool = False, overtaken: Message | None = None) -> Ending:
    """A signal ended the turn at a safe point; `overtaken` is a final text that was complete when it won."""
    note = f"What I had when you wrote:\n\n{overtaken.text}" if overtaken is not None else None
    if note is None and held.signal is Signal.STOP:
        note = STOPPED
    return Ending(STAMP[held.signal], by=held.by, message=overtaken, note=note, discarded=discarded)


@dataclass(frozen=True, slots=True)
class Mark:
    """A durable mark found on a turn: a tombstone or a stamp, and who made it."""

    reason: Reason
    by: str | None


def of_dead_turn(tombstone: Mark | None, stamp: Mark | None, *, lost_too_often: bool) -> Ending:
    """The ending of a turn whose worker is gone."""
    if tombstone is not None:
        return Ending(Reason.STOPPED, by=tombstone.by, note=STOPPED)
    if stamp is not None:
        return Ending(stamp.reason, by=stamp.by)
    if lost_too_often:
        return failed("the worker was lost three times in a row without any progress")
    return Ending(Reason.STALE)


def in_force(claimed: Ending, tombstone: Mark | None) -> Ending:
    """Which ending stands when a live turn is settled: a stop that was decided meanwhile goes first."""
    if tombstone is None or claimed.reason is Reason.STOPPED:
        return claimed
    note = claimed.note if claimed.message is not None else STOPPED
    return Ending(Reason.STOPPED, tombstone.by, claimed.message, note, discarded=claimed.discarded)

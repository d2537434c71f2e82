"""What would happen to these words if this person said them now: the policy table, asked beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from bot.console.html import Html, tag
from bot.console.identity import CHANNEL, thread_of
from bot.console.people import Person
from bot.console.records_port import Inside, Standing
from bot.console.say import understood
from core.arrivals import AuthorRole, Source, role_of
from core.policy import Effect, Situation, decide

SAYS = {
    Effect.START: ("Starts an analysis", "A card appears in the thread and shows the work."),
    Effect.STEER: ("Steers the work", "It is read at the next safe point, and the work changes course."),
    Effect.QUEUE: ("Waits its turn", "It is taken up once the current work has ended."),
    Effect.CONTEXT: ("Only read along", "The next request sees it. It wakes nobody."),
    Effect.STOP: ("Stops the work", "The work ends at its next safe point."),
    Effect.DENY: ("Refused", "Only the writer is told why."),
}


@dataclass(frozen=True, slots=True)
class Foresight:
    """What would happen. `effect` is None when the words are not for Watchkeeper at all."""

    effect: Effect | None
    role: AuthorRole
    rule: str
    reason: str


async def foresee(inside: Inside, person: Person, text: str, thread: str | None) -> Foresight:
    """Ask the table with what is known now."""
    known = Standing()
    if thread is not None:
        known = await inside.records.standing(thread_of(thread).conversation_id)
    role = role_of(person.author, initiator=known.initiator, responders=inside.responders)
    speech = understood(text)
    began = thread is not None and (known.initiator is not None or known.running)
    if speech.source is Source.THREAD_REPLY and not began:
        return Foresight(None, role, "", "Mention @watchkeeper, and it starts.")
    situation = Situation(speech.source, role, speech.marker, speech.addressed, known.running, CHANNEL)
    verdict = decide(inside.policy, situation)
    return Foresight(verdict.effect, role, verdict.rule, verdict.reason)


def draw_foresight(found: Foresight, person: Person) -> Html:
    """One line beside the composer."""
    if found.effect is None:
        return tag("p", tag("b", "Not for Watchkeeper.", class_="effect none"), f" {found.reason}")
    words, meaning = SAYS[found.effect]
    reason = found.reason if found.effect is Effect.DENY else meaning
    return tag(
        "p",
        tag("b", words, class_=f"effect {found.effect}"),
        f" {reason} ",
        tag("span", f"{person.name} is {_a(found.role)} here · rule {found.rule}", class_="rule"),
    )


def _a(role: AuthorRole) -> str:
    if role is AuthorRole.INITIATOR:
        return "the initiator"
    return f"{'an' if role.value[0] in 'aeiou' else 'a'} {role.value}"

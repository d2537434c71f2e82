"""The transcript as the rehearsal reads it: what people said, and what its own calls came back with.

A call's id says which check it was: `KEY_WAY-NUMBER`. Calls of another model are left alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.history import Call, Message, Result, Role, Text

_SPOKEN = re.compile(
    r'<(message|context) from="([^"]*)" role="([^"]*)" at="([^"]*)">\n(.*?)\n</\1>', re.DOTALL
)
_OUTPUT = re.compile(r'\A\s*<tool_output call="(c\d+)" tool="[^"]*">\n(.*)\n</tool_output>\s*\Z', re.DOTALL)
_ID = re.compile(r"([a-z0-9_]+)_(\d+)-(\d+)")
_CUT_SHORT = ("stopped after", "asked to stop", "not executed", "outcome unknown")
_FRESH = re.compile(r"\b(?:again|anew|recheck|re-check|once more|afresh)\b", re.IGNORECASE)


class Ending(StrEnum):
    """How a call came back, as far as it matters here."""

    OK = "ok"
    FAILED = "failed"
    CUT_SHORT = "cut short"


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody wrote; only those who may instruct steer. `place` counts the messages before it."""

    name: str
    role: str
    words: str
    instructs: bool
    place: int


@dataclass(frozen=True, slots=True)
class Made:
    """One of our calls with its result; `label` is what an answer cites ("" when the result has none)."""

    check: str
    way: int
    call: Call
    label: str
    text: str
    ending: Ending
    place: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the next message is decided from: everything since the investigation began, or began anew."""

    said: tuple[Said, ...]
    made: tuple[Made, ...]
    steps: int  # batches since the last answer
    calls: int  # of the whole conversation, for ids that are unique
    spoke: int  # place of our last message, -1 before any

    @property
    def question(self) -> Said | None:
        """The message that the investigation began with: the first of a person, else whatever came first."""
        people = [said for said in self.said if said.instructs]
        return next(iter(people or self.said), None)

    @property
    def later(self) -> tuple[Said, ...]:
        """What people wrote after the question."""
        question = self.question
        return tuple(said for said in self.said if said.instructs and said is not question)

    @property
    def news(self) -> tuple[Said, ...]:
        """What people wrote since our last message, the question apart."""
        return tuple(said for said in self.later if said.place > self.spoke)


def read(messages: Sequence[Message]) -> Transcript:
    """The transcript; what an answer closed and a person wants looked at again is left out."""
    said = [each for place, message in enumerate(messages) for each in _said(message, place)]
    answers = [place for place, message in enumerate(messages) if _is_answer(message)]
    answered = answers[-1] + 1 if answers else 0
    fresh = [each.place for each in said if each.place >= min(answers, default=10**9) and _is_fresh(each)]
    begin = max(fresh, default=0)
    return Transcript(
        said=tuple(each for each in said if each.place >= begin),
        made=tuple(each for each in _made(messages) if each.place >= begin),
        steps=sum(bool(message.calls) for message in messages[answered:]),
        calls=sum(len(message.calls) for message in messages),
        spoke=max((place for place, each in enumerate(messages) if each.role is Role.ASSISTANT), default=-1),
    )


def _is_fresh(said: Said) -> bool:
    return said.instructs and _FRESH.search(said.words) is not None


def _is_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT and not message.calls and bool(message.text.strip())


def _said(message: Message, place: int) -> list[Said]:
    if message.role is not Role.USER:
        return []
    return [
        Said(html.unescape(name), html.unescape(role), words, tag == "message", place)
        for block in message.blocks
        if isinstance(block, Text)
        for tag, name, role, _, words in _SPOKEN.findall(block.text)
    ]


def _made(messages: Sequence[Message]) -> list[Made]:
    results = {
        block.call_id: block for message in messages for block in message.blocks if isinstance(block, Result)
    }
    return [
        _one(call, results[call.id], place)
        for place, message in enumerate(messages)
        for call in message.calls
        if call.id in results and _ID.fullmatch(call.id)
    ]


def _one(call: Call, result: Result, place: int) -> Made:
    parts = _ID.fullmatch(call.id)
    output = _OUTPUT.match(result.text)
    label, text = (output[1], output[2]) if output else ("", result.text)
    ending = Ending.OK
    if result.is_error:
        ending = Ending.CUT_SHORT if text.startswith(_CUT_SHORT) else Ending.FAILED
    return Made(parts[1] if parts else "", int(parts[2]) if parts else 0, call, label, text, ending, place)

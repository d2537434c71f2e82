"""An answer cites calls by label, like [c3]; what a cited call was is told by the records, not by the model.

Rule 1: a citation of a call that never was is struck, and a line says so.
Rule 2: the list of cited calls is written here, from the records; one that the model wrote is replaced.
Rule 3: code is left alone, an answer without citations passes unchanged, checking twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core.tools import Outcome

HEADING = "*Calls cited*"
LONGEST_QUERY = 160
_WIDEST_RANGE = 50

_ITEM = r"c?\d{1,6}"
_LABELS = rf"\[\s*c\d{{1,6}}(?:\s*(?:,|;|&|and|[-–—])\s*{_ITEM})*\s*\]"
_CODE_OR_CITATION = re.compile(
    rf"(?P<code>(?P<ticks>`+).+?(?P=ticks))|(?P<struck>~~{_LABELS}~~)|(?P<labels>{_LABELS})(?!\()",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"({_ITEM})\s*[-–—]\s*({_ITEM})|({_ITEM})", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_LISTED = re.compile(r"- \[(c\d{1,6})\] ")

_HOW_IT_ENDED: Mapping[Outcome, str] = {
    Outcome.OK: "",
    Outcome.ERROR: "failed",
    Outcome.STOPPED: "stopped early",
    Outcome.ASKED_TO_STOP: "asked to stop, unconfirmed",
    Outcome.TIMED_OUT: "timed out",
    Outcome.NOT_EXECUTED: "not executed",
    Outcome.UNKNOWN: "outcome unknown",
}


@dataclass(frozen=True, slots=True)
class CitedCall:
    """What the records say of a call: `query` and `time_range` are "" where it has none."""

    label: str
    tool: str
    query: str
    time_range: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer as it is posted, and the labels in it that name no call."""

    text: str
    unknown: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    """Numbers of the calls cited, and of those that never were."""

    calls: Mapping[int, CitedCall]
    cited: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)

    def note(self, numbers: Iterable[int], *, struck: bool = False) -> None:
        for number in numbers:
            if number not in self.calls:
                self.unknown.add(number)
            elif not struck:
                self.cited.add(number)


def checked(answer: str, calls: Mapping[str, CitedCall]) -> CheckedAnswer:
    """The answer with its citations held against the calls of the investigation (by label, like "c3")."""
    found = _Found({_number(label): call for label, call in calls.items()})
    lines, open_fence = _checked_lines(answer.split("\n"), found)
    if not found.cited and not found.unknown:
        return CheckedAnswer(answer)
    text = "\n".join(lines).rstrip()
    if open_fence:
        text += f"\n{open_fence}"
    unknown = tuple(f"c{number}" for number in sorted(found.unknown))
    return CheckedAnswer("\n".join([text, "", HEADING, *_footer(found)]).lstrip("\n"), unknown)


def _checked_lines(lines: list[str], found: _Found) -> tuple[list[str], str]:
    """The lines, their citations checked, without any list of calls; and the fence left open, if any."""
    kept: list[str] = []
    fence, at = "", 0
    while at < len(lines):
        line, at = lines[at], at + 1
        marks = _FENCE.match(line)
        if fence:
            if marks and marks["marks"].startswith(fence) and not marks["info"].strip():
                fence = ""
        elif marks:
            fence = marks["marks"]
        elif line.strip() == HEADING and at < len(lines) and _LISTED.match(lines[at]):
            at = _skip_list(lines, at, found)
            continue
        else:
            line = _CODE_OR_CITATION.sub(lambda match: _checked_citation(match, found), line)
        kept.append(line)
    return kept, fence


def _skip_list(lines: list[str], at: int, found: _Found) -> int:
    while at < len(lines) and (listed := _LISTED.match(lines[at])):
        found.note([_number(listed[1])])
        at += 1
    return at


def _checked_citation(match: re.Match[str], found: _Found) -> str:
    if match["code"]:
        return match[0]
    numbers = _numbers(match[0])
    found.note(numbers, struck=bool(match["struck"]))
    unknown = [number for number in numbers if number not in found.calls]
    if match["struck"] or not unknown:
        return match[0]
    known = ", ".join(f"c{number}" for number in numbers if number in found.calls)
    shown = [f"[{known}]"] if known else []
    # Behind a tilde our own would begin a fence, behind a bracket they would strike what stands before it.
    gap = " " if match.string[: match.start()].endswith(("~", "]")) else ""
    return gap + " ".join([*shown, *(f"~~[c{number}]~~" for number in unknown)])


def _numbers(items: str) -> list[int]:
    """Each number once, ranges spelled out (a range too wide to be meant stands for its ends)."""
    numbers: dict[int, None] = {}
    for first, last, single in _RANGE.findall(items):
        if single:
            numbers[_number(single)] = None
            continue
        start, end = _number(first), _number(last)
        meant = range(start, end + 1) if start <= end < start + _WIDEST_RANGE else (start, end)
        numbers.update(dict.fromkeys(meant))
    return list(numbers)


def _number(label: str) -> int:
    return int(label.lower().removeprefix("c"))


def _footer(found: _Found) -> list[str]:
    lines = [_line(number, found.calls[number]) for number in sorted(found.cited)]
    return lines + [
        f"- [c{number}] is not a call of this investigation: struck" for number in sorted(found.unknown)
    ]


def _line(number: int, call: CitedCall) -> str:
    query = " ".join(call.query.replace("`", "'").split())
    if len(query) > LONGEST_QUERY:
        query = f"{query[: LONGEST_QUERY - 1]}…"
    parts = [f"- [c{number}] {' '.join(call.tool.split())}"]
    if query:
        parts.append(f": `{query}`")
    if call.time_range:
        parts.append(f" ({' '.join(call.time_range.split())})")
    if ended := _HOW_IT_ENDED[call.outcome]:
        parts.append(f" – {ended}")
    return "".join(parts)

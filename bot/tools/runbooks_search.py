"""Ranks runbooks by the words of a question (BM25 over titles, headings and bodies), with snippets.

https://en.wikipedia.org/wiki/Okapi_BM25 with a word in a title or heading counted several times.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.tools.runbooks_folder import Runbook

K1, B = 1.2, 0.75
IN_TITLE, IN_HEADING, IN_BODY = 6, 3, 1
PART = 0.5  # of a word that is only a part of one in the text, or the other way round

_WORD = re.compile(r"[^\W_]{2,60}")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.{1,300}?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_STOP = frozenset(
    {"the", "and", "for", "with", "that", "this", "from", "are", "was", "not", "how", "what", "when"}
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what follows it, up to the next heading. Level 0 is what stands before the first."""

    level: int
    heading: str
    body: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A runbook that fits, with the section that fits best."""

    runbook: Runbook
    title: str
    score: float
    heading: str
    snippet: str


def sections(text: str) -> list[Section]:
    """The parts of a Markdown text; a `#` in a fenced block is no heading."""
    found: list[Section] = []
    level, heading, body, fence = 0, "", [], ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1][:3]
        elif mark and mark[1].startswith(fence):
            fence = ""
        head = None if fence else _HEADING.match(line)
        if head is None:
            body.append(line)
            continue
        found.append(Section(level, heading, "\n".join(body)))
        level, heading, body = len(head[1]), head[2], []
    found.append(Section(level, heading, "\n".join(body)))
    return [each for each in found if each.level or each.body.strip()]


def title(runbook: Runbook) -> str:
    """The first heading, else the file's name."""
    return next((each.heading for each in sections(runbook.text) if each.level), runbook.name)


def words(text: str) -> list[str]:
    """The words that tell something, in lower case."""
    return [word for word in (found.lower() for found in _WORD.findall(text)) if word not in _STOP]


def search(runbooks: Sequence[Runbook], question: str, most: int) -> list[Hit]:
    """The runbooks that hold words of the question, the best first."""
    asked = list(dict.fromkeys(words(question)))[:20]
    counted = [(runbook, _weights(runbook)) for runbook in runbooks]
    mean = sum(weights.total() for _, weights in counted) / max(1, len(counted)) or 1.0
    frequency = [[_times(word, weights) for _, weights in counted] for word in asked]
    hits = []
    for place, (runbook, weights) in enumerate(counted):
        score = 0.0
        for times in frequency:
            holders = sum(1 for each in times if each)
            rare = math.log(1 + (len(counted) - holders + 0.5) / (holders + 0.5))
            length = K1 * (1 - B + B * weights.total() / mean)
            score += rare * times[place] * (K1 + 1) / (times[place] + length)
        if score > 0:
            hits.append((score, runbook))
    hits.sort(key=lambda hit: (-hit[0], hit[1].name))
    return [_hit(runbook, score, asked) for score, runbook in hits[:most]]


def _weights(runbook: Runbook) -> Counter[str]:
    weights: Counter[str] = Counter()
    for word in words(runbook.name.rpartition(".")[0]) + words(title(runbook)):
        weights[word] += IN_TITLE
    for section in sections(runbook.text):
        for word in words(section.heading):
            weights[word] += IN_HEADING
        for word in words(section.body):
            weights[word] += IN_BODY
    return weights


def _times(word: str, weights: Counter[str]) -> float:
    """How often a word is there; "pool" is found in "pools" and the other way round, for less."""
    if exact := weights[word]:
        return float(exact)
    return PART * sum(
        count
        for other, count in weights.items()
        if min(len(word), len(other)) >= 4 and (other.startswith(word) or word.startswith(other))
    )


def _hit(runbook: Runbook, score: float, asked: Sequence[str]) -> Hit:
    def fits(text: str) -> int:
        there = words(text)
        return sum(any(each.startswith(word) for each in there) for word in asked)

    def worth(part: Section) -> int:
        return 2 * fits(part.body) + (fits(part.heading) if part.level > 1 else 0)

    best = max(sections(runbook.text), key=worth, default=None)
    if best is None:
        return Hit(runbook, title(runbook), score, "", "")
    lines = [line.strip() for line in best.body.splitlines() if line.strip()]
    first = max(range(len(lines)), key=lambda at: fits(lines[at]), default=0)
    return Hit(runbook, title(runbook), score, best.heading, "\n".join(lines[first : first + 3]))

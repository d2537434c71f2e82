"""What people's words change: which cause they believe in, which one they rule out, where they want to look.

It is what a person believes, not proof: a hint is checked first, and the evidence decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.model.rehearsal.hypotheses import Hypothesis
from bot.model.rehearsal.picture import Picture
from bot.model.rehearsal.transcript import Said, Transcript

WORDS: Mapping[Hypothesis, re.Pattern[str]] = {
    hypothesis: re.compile(rf"\b(?:{pattern})", re.IGNORECASE)
    for hypothesis, pattern in {
        Hypothesis.DEPLOY: r"deploy|release|roll(?:ed|ing)?[ -]?(?:out|back)|version|commit|shipped|merged",
        Hypothesis.POOL: r"pools?\b|connections?\b|idle in transaction",
        Hypothesis.DEPENDENCY: r"dependenc|upstream|third[ -]party|provider|external|vendor"
        r"|compan(?:y|ies)\b|partners?\b|apis?\b",
        Hypothesis.CERTIFICATE: r"certificates?\b|certs?\b|tls\b|ssl\b|x509|handshake",
        Hypothesis.NEIGHBOUR: r"neighbou?r|noisy|cpu\b|processor|throttl|node\b|nodes\b|machine|batch job",
        Hypothesis.NOTHING: r"false (?:alarm|positive)|nothing (?:is |really )?wrong|flapp|fluke|as usual"
        r"|at all\b|compared? (?:with|to)",
    }.items()
}
SYNONYMS: Mapping[str, re.Pattern[str]] = {
    "database": re.compile(r"\b(?:db|databases?|postgres(?:ql)?|mysql|sql)\b", re.IGNORECASE)
}
_CLAUSE = re.compile(
    r"[,;!?\n–—]|\.(?:\s|$)|\bbut\b|\binstead\b|\brather\b|\band (?=look|check|see|try|focus)"
)
_NOT = re.compile(
    r"\b(?:ignore|forget|leave (?:out|aside)|skip|never ?mind|not|isn['’]?t|wasn['’]?t|rule out|drop"
    r"|without|don['’]?t|stop looking|no need|unrelated|innocent|(?:is|are|was) (?:fine|ok|okay|good))\b",
    re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s<>|)\"']{3,300}")


@dataclass(frozen=True, slots=True)
class Hint:
    """One thing that a person said: a cause or a service, to look at or (`dropped`) to leave out."""

    said: Said
    hypothesis: Hypothesis | None = None
    service: str = ""
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """What all hints together ask for; the later wins, but not over the initiator."""

    hints: tuple[Hint, ...]
    wanted: tuple[Hypothesis, ...]
    dropped: frozenset[Hypothesis]
    focus: tuple[str, ...]
    addresses: tuple[str, ...]


def course(transcript: Transcript, picture: Picture) -> Course:
    """The course after everything that was said. The newest hint comes first."""
    people = [
        each for each in (transcript.question, *transcript.later) if each is not None and each.instructs
    ]
    found = [hint for said in people for hint in hints(said, picture)]
    standing: dict[Hypothesis, Hint] = {}
    for hint in found:
        if hint.hypothesis is None:
            continue
        before = standing.pop(hint.hypothesis, None)
        keeps = before is not None and before.said.role == "initiator" and hint.said.role != "initiator"
        standing[hint.hypothesis] = before if before is not None and keeps else hint
    wanted = [each for each, hint in standing.items() if not hint.dropped]
    asked = [hint for hint in found if hint.said is not transcript.question]
    return Course(
        hints=tuple(found),
        wanted=tuple(reversed(wanted)),
        dropped=frozenset(each for each, hint in standing.items() if hint.dropped),
        focus=tuple(
            dict.fromkeys(hint.service for hint in reversed(asked) if hint.service and not hint.dropped)
        ),
        addresses=tuple(dict.fromkeys(url for said in people for url in _URL.findall(said.words)))[:3],
    )


def hints(said: Said, picture: Picture) -> list[Hint]:
    """What one message names, clause by clause."""
    found: dict[tuple[Hypothesis | None, str], Hint] = {}
    for clause in _CLAUSE.split(_URL.sub(" ", said.words)):
        dropped = _NOT.search(clause) is not None
        for hypothesis, pattern in WORDS.items():
            if pattern.search(clause):
                found[hypothesis, ""] = Hint(said, hypothesis, "", dropped)
        for service in named(clause, picture.services):
            found[None, service] = Hint(said, None, service, dropped)
    return list(found.values())


def named(clause: str, services: Sequence[str]) -> list[str]:
    """Services that the words name, by themselves or by another usual name."""
    # The usual names mean something before any fact has named a service.
    missing = [name for name, usual in SYNONYMS.items() if name not in services and usual.search(clause)]
    found = missing
    for service in services:
        stem = re.escape(service.removesuffix("s"))
        usual = SYNONYMS.get(service)
        if re.search(rf"\b{stem}s?\b", clause, re.IGNORECASE) or (usual and usual.search(clause)):
            found.append(service)
    return found


def told(hint: Hint) -> str:
    """A hint in words."""
    return hint.service or (hint.hypothesis.value if hint.hypothesis else "")

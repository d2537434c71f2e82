"""What can be asked, as data: each check has one or more ways, in the words of the usual tools.

Rule 1: a way is open when a tool with a fitting name is declared and takes what the way has to give.
Rule 2: when one way failed, the next is tried; what was cut short is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.history import Json
from core.tools import ToolClass, ToolSpec


class Kind(StrEnum):
    """Kinds of tools, told apart by name; the value is for people."""

    RANGE = "metrics over time"
    QUERY = "metrics now"
    ALERTS = "alerts"
    LOGS = "logs"
    DEPLOYS = "deploys"
    DEPLOY = "one deploy"
    FIND_RUNBOOK = "runbooks"
    READ_RUNBOOK = "one runbook"
    PROBE = "HTTP probes"


NAMES: Mapping[Kind, re.Pattern[str]] = {
    Kind.RANGE: re.compile(r"(?:prom|metric|mimir|thanos).*range|query_range", re.IGNORECASE),
    Kind.QUERY: re.compile(r"(?:prom|metric|mimir|thanos).*(?:query|instant)(?!_?range)$", re.IGNORECASE),
    Kind.ALERTS: re.compile(r"alerts?$", re.IGNORECASE),
    Kind.LOGS: re.compile(r"(?:logs?|loki).*(?:query|search)", re.IGNORECASE),
    Kind.DEPLOYS: re.compile(r"(?:deploy|release).*list|list.*(?:deploy|release)", re.IGNORECASE),
    Kind.DEPLOY: re.compile(
        r"(?:deploy|release).*(?:show|get)|(?:show|get)_(?:deploy|release)", re.IGNORECASE
    ),
    Kind.FIND_RUNBOOK: re.compile(r"runbooks?.*search|search.*runbook", re.IGNORECASE),
    Kind.READ_RUNBOOK: re.compile(r"runbooks?.*(?:read|get)|(?:read|get).*runbook", re.IGNORECASE),
    Kind.PROBE: re.compile(r"probe", re.IGNORECASE),
}
# What a way gives, and the names under which tools take it.
ALIASES: Mapping[str, Sequence[str]] = {
    "query": ("query", "expr", "promql", "logql", "pattern", "words", "text", "q"),
    "start": ("start", "since", "from", "startTime"),
    "id": ("commit", "deploy", "id", "ref", "sha", "revision", "name", "path", "runbook"),
    "url": ("url", "address"),
    "unit": ("unit",),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One kind of tool, and what to give it; `{0}` stands for the check's subject."""

    kind: Kind
    gives: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the world. `key` is part of the call's id; `topic` says it to people."""

    key: str
    topic: str
    ways: tuple[Way, ...]
    subject: str = ""

    @property
    def family(self) -> str:
        """The key without its subject."""
        return self.key.partition("__")[0]


def open_way(
    check: Check, specs: Sequence[ToolSpec], since: int = 0
) -> tuple[int, str, dict[str, Json]] | None:
    """The first way from `since` on that a declared tool allows: its number, the tool and the input."""
    for number, way in enumerate(check.ways[since:], since):
        for spec in _named(specs, way.kind):
            if (given := _filled(spec, way.gives)) is not None:
                return number, spec.name, given
    return None


def kinds_of(specs: Sequence[ToolSpec]) -> frozenset[Kind]:
    """Which kinds of tools are declared."""
    return frozenset(kind for kind in Kind if any(True for _ in _named(specs, kind)))


def _named(specs: Sequence[ToolSpec], kind: Kind) -> Iterable[ToolSpec]:
    """Only tools that change nothing: a rehearsal has no right to act."""
    return (
        spec for spec in specs if spec.tool_class is ToolClass.READ_ONLY and NAMES[kind].search(spec.name)
    )


def _filled(spec: ToolSpec, gives: Mapping[str, str]) -> dict[str, Json] | None:
    properties: Mapping[str, Json] = spec.schema.get("properties") or {}
    given: dict[str, Json] = {}
    for role, value in gives.items():
        name = next((alias for alias in ALIASES[role] if alias in properties), None)
        if name is not None and _takes_words(properties[name]):
            given[name] = value
    missing = set(spec.schema.get("required") or ()) - given.keys()
    lost = {"query", "id", "url"} & gives.keys() and not given
    return None if missing or lost else given


def _takes_words(schema: Json) -> bool:
    kinds = schema.get("type", "string") if isinstance(schema, Mapping) else "string"
    return "string" in ([kinds] if isinstance(kinds, str) else kinds)

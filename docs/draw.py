"""Draws the tables in these pages from the program: `python -m docs.draw`. A test fails when one is stale.

A table stands between `<!-- drawn: NAME -->` and `<!-- end -->`; everything else is written by hand.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from prometheus_client import Metric
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bot.measures import Fleet, Measures
from bot.settings import sections, tool_sections
from bot.settings.environment import VARIABLES
from bot.slack.methods import EVENTS, METHODS
from bot.slack.refusal_table import DEEDS, Kind
from bot.slack.refusal_table import KINDS as REFUSALS
from core.arrivals import Addressed, AuthorRole, Marker, Source
from core.policy import BUILT_IN, DEFAULT, Rule, Situation, decide, policy
from core.reasons import REASONS
from core.resume import RESUMPTION
from core.signals import PRIORITY, STAMP
from core.turn import RULES, Phase

FOLDER = Path(__file__).parent
DRAWN = re.compile(r"(<!-- drawn: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("[model]", sections.ModelSection),
    ("[worker]", sections.WorkerSection),
    ("[card]", sections.CardSection),
    ("[reaper]", sections.ReaperSection),
    ("[slack]", sections.SlackSection),
    ("[[policy]]", sections.PolicyEntry),
    ("[tools.prometheus]", tool_sections.PrometheusSection),
    ("[tools.logs]", tool_sections.LogsSection),
    ("[tools.http]", tool_sections.HttpSection),
    ("[tools.runbooks]", tool_sections.RunbooksSection),
    ("[tools.deploys]", tool_sections.DeploysSection),
    ("[tools.NAME]", tool_sections.ToolSection),
    ("[[mcp]]", sections.McpEntry),
    ("[budget]", sections.BudgetSection),
    ("[[automation]]", sections.AutomationEntry),
)
KINDS: Mapping[object, str] = {float: "number", int: "whole number", str: "text", bool: "true or false"}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [tuple(heads)]
    lines += [tuple("---" for _ in lines[0]), *(tuple(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def variables() -> str:
    """The environment variables."""
    return table(
        ("variable", "meaning", "without it", "secret"),
        ((f"`{v.name}`", v.meaning, v.default, "yes" if v.secret else "") for v in VARIABLES),
    )


def keys() -> str:
    """Every key of the configuration file, section by section."""
    return "\n".join(_section(head, model) for head, model in SECTIONS)


def _section(head: str, model: type[BaseModel]) -> str:
    rows = [
        (f"`{field.alias or name}`", _kind(field.annotation), _default(field), field.description or "")
        for name, field in model.model_fields.items()
    ]
    drawn = table(("key", "value", "default", "meaning"), rows) if rows else ""
    return f"### `{head}`\n\n{model.__doc__ or ''}\n\n{drawn}".rstrip() + "\n"


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in KINDS:
        return KINDS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin in {Union, types.UnionType}:
        return _kind(next(part for part in arguments if part is not type(None)))
    if origin is tuple:
        return f"list of: {_kind(arguments[0])}"
    if origin is dict:
        return "table of texts"
    return _kind(arguments[0])  # Annotated


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default in (None, (), {}):
        return "none"
    return f"`{field.default}`"


def rules() -> str:
    """The built-in policy table."""
    rows = [_rule(rule) for rule in BUILT_IN]
    rows.append(
        (f"`{DEFAULT.rule}`", "any", "any", "any", "any", "any", DEFAULT.effect.value, DEFAULT.reason)
    )
    return table(("rule", "source", "role", "marker", "addressed", "state", "effect", "reason"), rows)


def _rule(rule: Rule) -> tuple[str, ...]:
    return (
        f"`{rule.name}`",
        _words(rule.sources, Source),
        _words(rule.roles, AuthorRole),
        _words(rule.markers, Marker),
        _words(rule.addressed, Addressed),
        "any" if rule.running is None else "running" if rule.running else "idle",
        f"{rule.effect}, silently" if rule.silent else rule.effect.value,
        rule.reason,
    )


def _words(members: Collection[Enum], kind: type[Enum]) -> str:
    return ", ".join(str(member.value) for member in kind if member in members) or "any"


def effects() -> str:
    """What a plain message does, for every source and role: running / idle."""
    in_force = policy()

    def cell(source: Source, role: AuthorRole) -> str:
        both = [
            decide(in_force, Situation(source, role, running=running)).effect for running in (True, False)
        ]
        return " / ".join(both) if both[0] is not both[1] else both[0].value

    return table(
        ("", *(role.value for role in AuthorRole)),
        ((source.value, *(cell(source, role) for role in AuthorRole)) for source in Source),
    )


def scopes() -> str:
    """Each scope of the Slack app and what needs it."""
    needs: dict[str, list[str]] = {}
    for name, wanted in [*EVENTS.items(), *((name, method.scopes) for name, method in METHODS.items())]:
        for scope in wanted:
            needs.setdefault(scope, []).append(f"`{name}`")
    return table(("scope", "needed by"), ((f"`{scope}`", ", ".join(needs[scope])) for scope in sorted(needs)))


def refusals() -> str:
    """What is done when Slack refuses, by kind, with the errors of each."""
    errors = {kind: ", ".join(f"`{name}`" for name, of in REFUSALS.items() if of is kind) for kind in Kind}
    errors[Kind.REFUSED] = "every other, also those that Slack has not named yet"
    errors[Kind.AWAY] += ", no connection"
    errors[Kind.UNCLEAR] += ", a status from 500 up, no answer in time"
    return table(
        ("what it means", "a card", "an answer or a note", "Slack's errors"),
        ((kind.value, DEEDS[kind].card, DEEDS[kind].post, errors[kind]) for kind in Kind),
    )


def turn_rules() -> str:
    """What a turn does with each fact in each phase, by the names of its rules."""
    facts = list(dict.fromkeys(fact for _, fact in RULES))

    def cell(phase: Phase, fact: type) -> str:
        rule = RULES.get((phase, fact))
        return "" if rule is None else rule.__name__.strip("_").replace("_", " ")

    return table(
        ("", *(phase.value.replace("_", " ") for phase in Phase if phase is not Phase.SETTLED)),
        (
            (fact.__name__, *(cell(phase, fact) for phase in Phase if phase is not Phase.SETTLED))
            for fact in facts
        ),
    )


def signals() -> str:
    """The signals in the order in which they are probed."""
    return table(
        ("order", "signal", "ends the turn as", "and then"),
        (
            (str(place), signal.value, STAMP[signal].value, _words_of(REASONS[STAMP[signal]].afterwards))
            for place, signal in enumerate(PRIORITY, 1)
        ),
    )


def reasons() -> str:
    """The settle reasons, as every ledger reads them."""
    return table(
        ("reason", "answered", "final event", "remediation", "diagnosis", "automation", "afterwards"),
        (
            (
                f"`{reason.value}`",
                _says(row.answered),
                _says(row.final_event),
                _says(row.remediation),
                _says(row.diagnosis),
                row.automation.value,
                _words_of(row.afterwards),
            )
            for reason, row in REASONS.items()
        ),
    )


def resumption() -> str:
    """What becomes of the calls that a lost worker left."""
    states = list(dict.fromkeys(state for _, state in RESUMPTION))
    classes = list(dict.fromkeys(tool_class for tool_class, _ in RESUMPTION))
    return table(
        ("", *(_words_of(state) for state in states)),
        (
            (_words_of(tool_class), *(_words_of(RESUMPTION[tool_class, state]) for state in states))
            for tool_class in classes
        ),
    )


def metrics() -> str:
    """Every metric of ours that a process on Slack with a database that answers has."""
    measures = Measures()
    measures.expect_slack_calls(METHODS)
    measures.fleet_is(Fleet(0.0, 0.0, 0))
    return table(
        ("metric", "type", "labels", "meaning"),
        (
            (f"`{_name(family)}`", family.type, _labels(family), family.documentation)
            for family in sorted(measures.registry.collect(), key=_name)
            if family.name.startswith("watchkeeper_")
        ),
    )


def _name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _labels(family: Metric) -> str:
    """Each label with its values; a bucket's bound is none of ours."""
    values: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                values.setdefault(label, {})[f"`{value}`"] = None
    return "; ".join(f"{label}: {', '.join(found)}" for label, found in values.items())


def _words_of(member: Enum) -> str:
    return str(member.value).replace("_", " ")


def _says(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"


DRAWINGS: Mapping[str, Callable[[], str]] = {
    "variables": variables,
    "keys": keys,
    "rules": rules,
    "effects": effects,
    "scopes": scopes,
    "refusals": refusals,
    "turn_rules": turn_rules,
    "signals": signals,
    "reasons": reasons,
    "resumption": resumption,
    "metrics": metrics,
}


def redrawn(text: str) -> str:
    """The page with its tables as they are now."""
    return DRAWN.sub(lambda found: f"{found[1]}\n{DRAWINGS[found[2]]()}\n{found[3]}", text)


def pages() -> list[Path]:
    """All pages, those without drawings too."""
    return sorted(FOLDER.glob("*.md"))


def main() -> None:
    """Bring every page up to date."""
    for page in pages():
        page.write_text(redrawn(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""`watchkeeper policy`: the table in force, and the decision in one situation."""

from __future__ import annotations

import os
from collections.abc import Collection
from enum import Enum
from pathlib import Path

import click

from bot.commands.words import json_line, say, table
from bot.settings import load
from core.arrivals import Addressed, AuthorRole, Marker, Source
from core.policy import DEFAULT, Policy, Rule, Situation, decide, unreachable

HEADS = ("rule", "source", "role", "marker", "addressed", "state", "channel", "effect")


@click.group("policy", invoke_without_command=True)
@click.pass_context
def policy(context: click.Context) -> None:
    """Print the policy table in force: rules are read from the top, the first match decides.

    \b
    Example:
      watchkeeper policy
      watchkeeper policy explain --source mention --role member --running
    """
    if context.invoked_subcommand is None:
        say(drawn(load(os.environ, Path.cwd()).policy))


@policy.command("explain")
@click.option("--source", required=True, type=click.Choice([s.value for s in Source]), help="What it is.")
@click.option("--role", required=True, type=click.Choice([r.value for r in AuthorRole]), help="Who wrote it.")
@click.option(
    "--marker",
    default="none",
    type=click.Choice([m.value for m in Marker]),
    help="Whether it asks to interrupt or to wait.",
)
@click.option(
    "--addressed",
    default="nobody",
    type=click.Choice([a.value for a in Addressed]),
    help="Whom it speaks to.",
)
@click.option("--running", is_flag=True, help="A turn runs in the conversation.")
@click.option("--channel", default="", help="The channel's id, for rules that name channels.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(  # noqa: PLR0917 - one parameter an option
    source: str, role: str, marker: str, addressed: str, running: bool, channel: str, as_json: bool
) -> None:
    """Print what a message would do, and which rule says so.

    \b
    Example:
      watchkeeper policy explain --source thread_reply --role guest --running --json
    """
    situation = Situation(
        Source(source), AuthorRole(role), Marker(marker), Addressed(addressed), running, channel
    )
    verdict = decide(load(os.environ, Path.cwd()).policy, situation)
    if as_json:
        say(json_line({"effect": verdict.effect, "rule": verdict.rule, "reason": verdict.reason}))
    else:
        say(f"{verdict.effect}, by the rule {verdict.rule}\n{verdict.reason}")


def drawn(in_force: Policy) -> str:
    """The table for people, the last row being what holds where no rule does."""
    last = (DEFAULT.rule, "any", "any", "any", "any", "any", "any", DEFAULT.effect)
    text = table(HEADS, [*(_row(rule) for rule in in_force.rules), last])
    for rule, by in unreachable(in_force):
        if rule.name.startswith("configured"):
            text += f"\n{rule.name} never decides: {by.name} stands before it"
    return text


def _row(rule: Rule) -> tuple[str, ...]:
    return (
        rule.name,
        _words(rule.sources, Source),
        _words(rule.roles, AuthorRole),
        _words(rule.markers, Marker),
        _words(rule.addressed, Addressed),
        "any" if rule.running is None else "running" if rule.running else "idle",
        ", ".join(rule.channels) or "any",
        f"{rule.effect}, silently" if rule.silent else rule.effect.value,
    )


def _words(members: Collection[Enum], kind: type[Enum]) -> str:
    """The members in the order in which their kind lists them."""
    return ", ".join(str(member.value) for member in kind if member in members) or "any"

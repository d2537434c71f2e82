"""`watchkeeper settles` and `watchkeeper show`: reading the records, also beside a running process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from bot.commands.words import json_line, plain, say, short, table
from bot.settings import load
from core.history import Json

if TYPE_CHECKING:
    from storage.engine import Database

T = TypeVar("T")

SETTLE_HEADS = (
    "settled",
    "reason",
    "conversation",
    "turn",
    "steps",
    "calls",
    "tokens in",
    "out",
    "cost",
    "cut by",
    "given up",
)


@click.command()
@click.option("--conversation", metavar="ID", help="Only those of one conversation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def settles(conversation: str | None, as_json: bool) -> None:
    """Print how turns ended, newest last.

    \b
    Example:
      watchkeeper settles --json | jq 'select(.reason == "failed")'
    """
    from storage import reports  # noqa: PLC0415 - the database layer is slow to load, and `--help` should not be

    records = asyncio.run(_reading(lambda db: reports.settle_records(db, conversation)))
    if as_json:
        for record in records:
            say(json_line(record))
    elif records:
        say(table(SETTLE_HEADS, [_settle_row(record) for record in records]))
    else:
        say(
            "no turn has ended yet"
            if conversation is None
            else f"no turn of {plain(conversation)} has ended yet"
        )


@click.command()
@click.argument("conversation")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(conversation: str, as_json: bool) -> None:
    """Print what happened in one conversation: its messages, turns and calls.

    \b
    Example:
      watchkeeper show slack:T012AB3CD:C045EF6GH:1700000000.000100
    """
    from storage import reports  # noqa: PLC0415 - as above

    found = asyncio.run(_reading(lambda db: reports.conversation(db, conversation)))
    if found is None:
        raise click.ClickException(
            f"there is no conversation {plain(conversation)}; `watchkeeper settles` lists those with a turn"
        )
    say(json_line(found) if as_json else _story(found))


async def _reading(read: Callable[[Database], Awaitable[T]]) -> T:
    from storage import schema  # noqa: PLC0415 - as above
    from storage.engine import Database  # noqa: PLC0415 - as above
    from storage.errors import SchemaOutdated  # noqa: PLC0415 - as above

    settings = load(os.environ, Path.cwd())
    database = await Database.open(settings.database_url, read_only=True)
    try:
        if not await schema.is_current(database):
            raise SchemaOutdated(f"{settings.env.database} is not at the current schema")
        return await read(database)
    finally:
        await database.close()


def _settle_row(record: dict[str, Json]) -> tuple[object, ...]:
    return (
        record["settled_at"],
        record["reason"],
        record["conversation_id"],
        record["turn_id"],
        record["steps"],
        record["tool_calls"],
        record["input_tokens"] + record["cache_read_tokens"] + record["cache_write_tokens"],
        record["output_tokens"],
        _money(record["cost_usd"]),
        record["cut_by"],
        "; ".join(
            f"{what}: {short(record[name], 60)}"
            for what, name in (("card", "card_given_up"), ("answer", "answer_given_up"))
            if record[name]
        )
        or None,
    )


def _story(found: dict[str, Json]) -> str:
    """Messages, then turns with their calls."""
    messages = [
        (m["source"], m["role"], m["effect"], m["rule"], m["fate"], m["turn_id"], short(m["text"], 60))
        for m in found["messages"]
    ]
    calls = [
        (
            turn["turn_id"],
            turn["reason"] or "running",
            number,
            call["tool"],
            call["class"],
            call["state"],
            call["attempts"],
        )
        for turn in found["turns"]
        for number, step in enumerate(turn["steps"], start=1)
        for call in step["calls"] or [{"tool": None, "class": None, "state": None, "attempts": None}]
    ]
    bare = [(t["turn_id"], t["reason"] or "running", *[None] * 5) for t in found["turns"] if not t["steps"]]
    return "\n".join(
        (
            f"{plain(found['conversation_id'])}, {_money(found['cost_usd'])}",
            "",
            table(("message", "role", "effect", "rule", "fate", "turn", "text"), messages),
            "",
            table(("turn", "reason", "step", "tool", "class", "state", "attempts"), [*calls, *bare]),
        )
    )


def _money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"

"""`watchkeeper settles` and `watchkeeper show`: reading the records, also beside a running process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from bot.commands.words import json_line, plain, say, short, table
from bot.logs import ACTING
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
UNDERWAY_HEADS = ("conversation", "state", "since", "worker", "goal")
WIDTH = 60
"""So many characters of a text are shown in a table."""


@click.command()
@click.option("--conversation", metavar="ID", help="Only those of one conversation.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1_000_000), help="Only the newest N.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def settles(conversation: str | None, limit: int | None, as_json: bool) -> None:
    """Print how turns ended, newest last.

    \b
    Example:
      watchkeeper settles --limit 20
      watchkeeper settles --json | jq 'select(.reason == "failed")'
    """
    from storage import reports  # noqa: PLC0415 - the database layer is slow to load, and `--help` should not be

    records = asyncio.run(_reading(lambda db: reports.settle_records(db, conversation, limit)))
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
@click.argument("conversation", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; of what runs or waits, one a line."
)
def show(conversation: str | None, as_json: bool) -> None:
    """Print what happened in one conversation: its messages, turns and calls, and what was said.

    Without a CONVERSATION, print which of them run or wait now.

    \b
    Example:
      watchkeeper show
      watchkeeper show slack:T012AB3CD:C045EF6GH:1700000000.000100
    """
    if conversation is None:
        _show_underway(as_json)
    else:
        _show_one(conversation, as_json)


def _show_underway(as_json: bool) -> None:
    from storage import reports  # noqa: PLC0415 - as above

    found = asyncio.run(_reading(reports.underway))
    if as_json:
        for each in found:
            say(json_line(each))
    elif found:
        say(table(UNDERWAY_HEADS, [_underway_row(each) for each in found]))
    else:
        say("nothing runs or waits")


def _show_one(conversation: str, as_json: bool) -> None:
    from storage import reports  # noqa: PLC0415 - as above

    found = asyncio.run(_reading(lambda db: reports.conversation(db, conversation)))
    if found is None:
        raise click.ClickException(
            f"there is no conversation {plain(conversation)}; "
            "`watchkeeper show` lists those that run or wait, `watchkeeper settles` those with an ended turn"
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
            f"{what}: {short(record[name], WIDTH)}"
            for what, name in (("card", "card_given_up"), ("answer", "answer_given_up"))
            if record[name]
        )
        or None,
    )


def _underway_row(each: dict[str, Json]) -> tuple[object, ...]:
    return (each["conversation_id"], each["state"], each["since"], each["worker"], short(each["goal"], WIDTH))


def _story(found: dict[str, Json]) -> str:
    """Messages, then turns with their calls, then what was said."""
    messages = [
        (m["source"], m["role"], m["effect"], m["rule"], m["fate"], m["turn_id"], short(m["text"], WIDTH))
        for m in found["messages"]
    ]
    calls = [
        (turn["turn_id"], _how(turn), number, call["tool"], call["class"], _state(call), call["attempts"])
        for turn in found["turns"]
        for number, step in enumerate(turn["steps"], start=1)
        for call in step["calls"] or [NO_CALL]
    ]
    bare = [(turn["turn_id"], _how(turn), *[None] * 5) for turn in found["turns"] if not turn["steps"]]
    return "\n".join(
        (
            f"{plain(found['conversation_id'])}, {_money(found['cost_usd'])}",
            "",
            table(("message", "role", "effect", "rule", "fate", "turn", "text"), messages),
            "",
            table(("turn", "reason", "step", "tool", "class", "state", "attempts"), [*calls, *bare]),
            *(("", *_said(found["posts"])) if found["posts"] else ()),
        )
    )


NO_CALL: dict[str, Json] = {"tool": None, "class": None, "state": None, "attempts": None, "age_s": None}


def _how(turn: dict[str, Json]) -> str:
    """How a turn ended, or where and since when it runs."""
    return turn["reason"] or f"running since {turn['started_at']} on {turn['worker']}"


def _state(call: dict[str, Json]) -> str | None:
    return call["state"] if call["age_s"] is None else f"{call['state']}, {call['age_s']:.0f} s ago"


def _said(posts: list[dict[str, Json]]) -> list[str]:
    """A line for each post; below one that was given up the whole text, which people did not see."""
    rows = [(post["kind"], _when(post), _gist(post)) for post in posts]
    head, *lines = table(("said", "when", "text"), rows).split("\n")
    return [
        head,
        *(
            text
            for post, line in zip(posts, lines, strict=True)
            for text in (line, *(_whole(post["text"]) if post["given_up"] is not None else ()))
        ),
    ]


def _when(post: dict[str, Json]) -> str:
    if post["posted_at"] is not None:
        return str(post["posted_at"])
    return str(post["queued_at"]) if post["given_up"] is not None else f"waits since {post['queued_at']}"


def _gist(post: dict[str, Json]) -> str:
    if post["given_up"] is not None:
        return f"GIVEN UP: {post['given_up']}"
    return short(next((line for line in post["text"].splitlines() if line.strip()), None), WIDTH)


def _whole(text: str) -> list[str]:
    """All lines of a text, set in, without anything that acts on a terminal."""
    return [f"    {ACTING.sub(' ', line)}".rstrip() for line in text.splitlines()]


def _money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"

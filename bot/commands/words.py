"""Words on the terminal: tables, JSON lines, and text from outside made harmless."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from bot.logs import ACTING
from core.history import Json


def plain(value: object) -> str:
    """A value on one line, without anything that acts on a terminal; nothing at all shows as a dash."""
    text = "" if value is None else str(value)
    return ACTING.sub(" ", text).strip() or "-"


def short(value: object, width: int) -> str:
    """The same, cut to so many characters."""
    text = plain(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned with two spaces between them."""
    cells = [[plain(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def json_line(value: Json) -> str:
    """One JSON object on one line, in ASCII: it survives every terminal and pipe."""
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)


def say(text: str) -> None:
    """Print the result of a command."""
    click.echo(text)


def complain(text: str) -> None:
    """Tell people what went wrong, on standard error."""
    click.echo(f"watchkeeper: {text}", err=True)

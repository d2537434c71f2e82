"""Markdown tables as aligned text: Slack's mrkdwn knows no tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

SEPARATOR = re.compile(r"^[ \t]*\|[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
CELL_END = re.compile(r"(?<!\\)\|")
STYLING = re.compile(r"\*\*|`")  # a code block would show these signs as they are
WIDEST_CELL = 60


def tables(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines; True for a table, already drawn. A single row is no table but a line with bars."""
    for are_rows, run in groupby(lines, _is_row):
        rows = list(run)
        is_table = are_rows and len(rows) > 1 and not all(SEPARATOR.match(row) for row in rows)
        yield is_table, _drawn(rows) if is_table else rows


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 1 and bare.startswith("|") and bare.endswith("|")


def _drawn(lines: list[str]) -> list[str]:
    rows = [_cells(line) for line in lines if not SEPARATOR.match(line)]
    columns = range(max(map(len, rows)))
    widths = [min(WIDEST_CELL, max(len(row[at]) for row in rows if at < len(row))) for at in columns]
    drawn = ["  ".join(cell.ljust(widths[at]) for at, cell in enumerate(row)).rstrip() for row in rows]
    if SEPARATOR.match(lines[1]):
        drawn.insert(1, "  ".join("─" * width for width in widths))
    return drawn


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [STYLING.sub("", cell.strip().replace("\\|", "|")) for cell in CELL_END.split(inner)]

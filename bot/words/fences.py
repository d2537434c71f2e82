"""Code fences of Markdown: which lines of a text are code. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\s`~]*)[^`]*$")


def pieces(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines without the fences, all code or none. A fence that is never closed runs to the end."""
    opened = ""
    run: list[str] = []
    for line in text.split("\n"):
        after = after_line(opened, line)
        if after == opened:
            run.append(line)
            continue
        if run or opened:
            yield bool(opened), run
        opened, run = after, []
    if run:
        yield bool(opened), run


def open_fence(lines: Sequence[str]) -> str:
    """The line that opened the code in which these lines end, or ""."""
    opened = ""
    for line in lines:
        opened = after_line(opened, line)
    return opened


def closing(opened: str) -> list[str]:
    """The line that closes this fence, if it is one."""
    found = FENCE.match(opened)
    return [found[1]] if found else []


def after_line(opened: str, line: str) -> str:
    """The fence that is open after this line, given the one before it."""
    found, before = FENCE.match(line), FENCE.match(opened)
    if found is None:
        return opened
    if before is None:
        return line
    return "" if not found[2] and found[1].startswith(before[1]) else opened

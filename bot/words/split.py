"""Long Markdown in parts that each fit one message, code fences closed and opened again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bot.words.fences import closing, open_fence

LONGEST_LINE = 450  # a longer line is broken up first: one of five-fold escapes still fits
WORTH_GOING_BACK = 0.4


def split(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The parts, in order; none for a text without words. A single line of the longest length must fit."""
    parts: list[str] = []
    current: list[str] = []
    for line in _lines(text):
        if current and not fits(_closed([*current, line])):
            here, rest = _cut(current)
            parts.append(_closed(here))
            opened = open_fence(here)
            current = [opened, *rest] if opened else rest
        current.append(line)
    parts.append(_closed(current))
    return [part for part in (part.strip("\n") for part in parts) if part.strip()]


def _lines(text: str) -> Iterable[str]:
    for line in text.split("\n"):
        yield from _broken(line) if len(line) > LONGEST_LINE else (line,)


def _broken(line: str) -> Iterable[str]:
    """A long line at spaces, or anywhere where there is none; never between a letter and its accents."""
    while len(line) > LONGEST_LINE:
        at = line.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE)
        at = at if at > 0 else _letter_end(line, LONGEST_LINE)
        yield line[:at]
        line = line[at:].removeprefix(" ")
    yield line


def _letter_end(line: str, at: int) -> int:
    joins = re.compile("[\u0300-\u036f\u200d\ufe0f\U0001f3fb-\U0001f3ff]")
    for back in range(at, at - 20, -1):
        if not joins.match(line[back]) and line[back - 1] != "\u200d":
            return back
    return at


def _cut(lines: list[str]) -> tuple[list[str], list[str]]:
    """After the last blank line outside code if that leaves a decent part, else here."""
    for at in range(len(lines) - 1, int(len(lines) * WORTH_GOING_BACK), -1):
        if not lines[at].strip() and not open_fence(lines[:at]):
            return lines[:at], lines[at + 1 :]
    return lines, []


def _closed(lines: list[str]) -> str:
    return "\n".join([*lines, *closing(open_fence(lines))])

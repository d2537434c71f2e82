"""Long Markdown in parts that each fit one message, code fences closed and opened again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bot.words.fences import after_line, closing, open_fence

LONGEST_LINE = 450  # a longer line is broken up first: one of five-fold escapes still fits
WORTH_GOING_BACK = 0.4


def split(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The parts, in order; none for a text without words. A single line of the longest length must fit."""
    parts: list[str] = []
    rest, opened = list(_lines(text)), ""
    while rest:
        part, rest = _first_part(opened, rest, fits)
        parts.append(_closed(part))
        opened = open_fence(part)
    return [part for part in (part.strip("\n") for part in parts) if part.strip()]


def _first_part(opened: str, lines: list[str], fits: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """As many of the lines as fit, behind the fence that was left open, and the rest."""
    head = [opened] if opened else []
    count = _most(len(lines), lambda count: fits(_closed(head + lines[:count])))
    part, rest = head + lines[:count], lines[count:]
    end = _good_end(part) if rest else 0
    return (part[:end], [*part[end + 1 :], *rest]) if end else (part, rest)


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


def _most(count: int, holds: Callable[[int], bool]) -> int:
    """How many of them it holds for, at least one, in few looks: a look at a part means drawing it."""
    low, high = 1, 2
    while high <= count and holds(high):
        low, high = high, high * 2
    high = min(high, count + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _good_end(lines: list[str]) -> int:
    """The last blank line outside code that leaves a decent part, or 0."""
    end, opened = 0, ""
    for at, line in enumerate(lines):
        if at > int(len(lines) * WORTH_GOING_BACK) and not line.strip() and not opened:
            end = at
        opened = after_line(opened, line)
    return end


def _closed(lines: list[str]) -> str:
    return "\n".join([*lines, *closing(open_fence(lines))])

"""Long Markdown in parts that each fit one message, code fences closed and opened again. Pure.

A section may have 3,000 characters after escaping (docs.slack.dev/reference/block-kit/blocks/section-block),
a message about 9,000 bytes, of which the fallback text takes half.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.slack.fences import closing, open_fence
from bot.slack.text import Hosts, tidied, to_mrkdwn

MOST_CHARACTERS = 2_800
MOST_BYTES = 4_400
LONGEST_LINE = 450  # a longer line is broken up first: one of five-fold escapes still fits
WORTH_GOING_BACK = 0.4
# By how many characters drawing makes each of these longer, at most.
GROWS = {"&": 4, "<": 4, ">": 4, "](": 9, "://": 2, "mailto:": 2, "@": 1}


def split(text: str, hosts: Hosts = frozenset()) -> list[str]:
    """The parts, in order; none for a text without words."""
    parts: list[str] = []
    current: list[str] = []
    for line in _lines(tidied(text)):
        if current and not fits(_closed([*current, line]), hosts):
            here, rest = _cut(current)
            parts.append(_closed(here))
            opened = open_fence(here)
            current = [opened, *rest] if opened else rest
        current.append(line)
    parts.append(_closed(current))
    return [part for part in (part.strip("\n") for part in parts) if part.strip()]


def fits(markdown: str, hosts: Hosts = frozenset()) -> bool:
    """Whether it fits one message once it is drawn."""
    if len(markdown) > MOST_CHARACTERS:
        return False
    if _surely_fits(markdown):
        return True
    drawn = to_mrkdwn(markdown, hosts)
    return len(drawn) <= MOST_CHARACTERS and len(drawn.encode("utf-8", "replace")) <= MOST_BYTES


def _surely_fits(markdown: str) -> bool:
    """Without drawing it, which takes seconds for a long text. How wide a table gets only drawing tells."""
    if "|" in markdown:
        return False
    more = 8 + sum(most * markdown.count(sign) for sign, most in GROWS.items())
    wider = 6 * markdown.count("\n") + markdown.count("`") + 2 * markdown.count("@")
    weight = len(markdown.encode("utf-8", "replace")) + more + wider
    return len(markdown) + more <= MOST_CHARACTERS and weight <= MOST_BYTES


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

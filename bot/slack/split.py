"""Long Markdown in parts that each fit one message of Slack. Pure.

A section may have 3,000 characters after escaping (docs.slack.dev/reference/block-kit/blocks/section-block),
a message about 9,000 bytes, of which the fallback text takes half.
"""

from __future__ import annotations

from bot.slack.text import Hosts, tidied, to_mrkdwn
from bot.words import split as parts

MOST_CHARACTERS = 2_800
MOST_BYTES = 4_400
# By how many characters drawing makes each of these longer, at most.
GROWS = {"&": 4, "<": 4, ">": 4, "](": 9, "://": 2, "mailto:": 2, "@": 1}


def split(text: str, hosts: Hosts = frozenset()) -> list[str]:
    """The parts, in order; none for a text without words."""
    return parts.split(tidied(text), lambda part: fits(part, hosts))


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

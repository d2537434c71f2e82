"""A message as Slack takes it, and the few blocks that we draw with. Pure, knows Slack's limits.

Limits: docs.slack.dev/reference/block-kit/blocks; the cumulative one (`msg_blocks_too_long`) is undocumented
and lies at about 12,000 characters (https://github.com/slackapi/bolt-js/issues/2509), so we keep to 9,000
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from core.history import Json

Block = dict[str, Json]

MOST_BYTES = 9_000
LONGEST_SECTION = 3_000
LONGEST_FALLBACK = 2_900  # chat.update refuses a `text` over 4,000 even beside blocks
FALLBACK_BYTES = 4_400


class Richness(IntEnum):
    """How much of Block Kit a drawing asks for; a refusal leads one step down."""

    RICH = 0
    PLAIN = 1
    TEXT = 2
    BARE = 3  # one line: what must be said even if nothing else can


@dataclass(frozen=True, slots=True)
class Drawing:
    """`text` is what notifications and screen readers get, and all there is when `blocks` is empty."""

    text: str
    blocks: list[Block]
    metadata: dict[str, Json]

    def arguments(self) -> dict[str, Json]:
        """For chat.postMessage and chat.update, whose defaults would make links and mentions out of words.

        `blocks: []` makes an update take away the blocks that the message had.
        """
        return {
            "text": self.text,
            "blocks": self.blocks,
            "metadata": self.metadata,
            "parse": "none",
            "link_names": False,
        }


def section(mrkdwn: str) -> Block:
    """`verbatim` keeps Slack from finding links and names by itself, `expand` from folding the text."""
    text = {"type": "mrkdwn", "text": mrkdwn[:LONGEST_SECTION], "verbatim": True}
    return {"type": "section", "text": text, "expand": True}


def context(*lines: str) -> Block:
    """Small grey words."""
    elements = [{"type": "mrkdwn", "text": line, "verbatim": True} for line in lines if line]
    return {"type": "context", "elements": elements}


def too_heavy(fallback: str, blocks: Iterable[Block]) -> bool:
    """Whether all that people see is more than a message may have."""
    return sum(len(text.encode("utf-8", "replace")) for text in [fallback, *shown(list(blocks))]) > MOST_BYTES


def shown(value: Json) -> Iterator[str]:
    """Every text in a drawing."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name in {"text", "title", "alt_text"}:
                yield inner
            yield from shown(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from shown(inner)

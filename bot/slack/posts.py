"""Answers, notes and charts as messages. Pure."""

from __future__ import annotations

from bot.ports import Post
from bot.slack.drawing import (
    FALLBACK_BYTES,
    LONGEST_FALLBACK,
    LONGEST_SECTION,
    MOST_BYTES,
    Block,
    Drawing,
    Richness,
    section,
    too_heavy,
)
from bot.slack.text import Hosts, clamped, cut, plain, said, to_mrkdwn
from bot.words.metadata import of_post
from core.history import Json

NO_WORDS = "(no words)"
BARE_BYTES = 1_000
LONGEST_POST = 12_000  # `Chat.split` keeps parts far below; whoever did not split is cut, not refused


def draw_post(post: Post, hosts: Hosts = frozenset(), richness: Richness = Richness.RICH) -> Drawing:
    """One message; what is longer than a message takes is cut with an ellipsis."""
    text = to_mrkdwn(clamped(post.text, LONGEST_POST), hosts).strip("\n")
    text = text if text.strip() else NO_WORDS
    most = BARE_BYTES if richness is Richness.BARE else FALLBACK_BYTES
    fallback = cut(text, LONGEST_FALLBACK, most)
    blocks = [] if richness >= Richness.TEXT else _sections(text, fallback)
    return Drawing(text=fallback, blocks=blocks, metadata=metadata(post))


def draw_chart(post: Post, file_id: str) -> Drawing:
    """A picture that was uploaded before, with its title."""
    title = plain(post.text, 300) or "Chart"
    image: Block = {"type": "image", "slack_file": {"id": file_id}, "alt_text": title}
    return Drawing(
        text=said(title, 300),
        blocks=[section(said(title, 300)), image],
        metadata=metadata(post),
    )


def metadata(post: Post) -> dict[str, Json]:
    """What a message of ours says about itself."""
    event, payload = of_post(post)
    return {"event_type": event, "event_payload": payload}


def _sections(mrkdwn: str, fallback: str) -> list[Block]:
    """Mostly one. What does not fit any more is cut, and an ellipsis says so."""
    blocks: list[Block] = []
    rest = mrkdwn
    while rest:
        here = rest if len(rest) <= LONGEST_SECTION else cut(rest, _break(rest), MOST_BYTES).removesuffix("…")
        if not here or too_heavy(fallback, [*blocks, section(here)]):
            return blocks or [section(fallback)]
        blocks.append(section(here))
        rest = rest[len(here) :].lstrip("\n")
    return blocks


def _break(text: str) -> int:
    """The last line end or space before the limit."""
    window = text[:LONGEST_SECTION]
    places = (window.rfind(sign) + 1 for sign in "\n ")
    return next((at for at in places if at > LONGEST_SECTION // 2), LONGEST_SECTION)

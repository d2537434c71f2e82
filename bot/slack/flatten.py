"""A message of anybody in plain words: text, attachments, blocks and files. Pure.

Alerting apps put little or nothing into `text`; the matter stands in attachments and blocks
(docs.slack.dev/reference/messaging/attachments).
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.slack.payload import Payload, record, records, words
from bot.slack.speech import attached, unescaped
from bot.words.speech import cleaned

LONGEST = 8_000
DEEPEST = 12


def words_of(message: Payload) -> str:
    """Everything that a reader of the channel sees in this message, each line once."""
    told: list[str] = []
    seen: set[str] = set()
    pieces = [
        words(message, "text"),
        *_texts(message),
        *([attached(message)] if records(message, "files") else []),
    ]
    for piece in pieces:
        for line in unescaped(cleaned(piece)).split("\n"):
            bare = line.strip().strip("*_`").strip()
            if bare and bare not in seen:
                seen.add(bare)
                told.append(line.rstrip())
    text = "\n".join(told)
    return text if len(text) <= LONGEST else text[:LONGEST] + " […]"


def _texts(message: Payload) -> Iterator[str]:
    """Blocks only where they may say more than the text: a person's rich_text says the same once more."""
    for block in records(message, "blocks"):
        if block.get("type") != "rich_text" or not words(message, "text"):
            yield from _inside(block)
    for attachment in records(message, "attachments"):
        yield from _attachment(attachment)


def _attachment(attachment: Payload) -> Iterator[str]:
    told = [text for name in ("pretext", "author_name", "title", "text") if (text := words(attachment, name))]
    yield from told
    for field in records(attachment, "fields"):
        yield f"{words(field, 'title')}: {words(field, 'value')}".removeprefix(": ")
    for block in records(attachment, "blocks"):
        yield from _inside(block)
    if not told and not attachment.get("blocks"):
        yield words(attachment, "fallback")


def _inside(block: Payload, depth: int = 0) -> Iterator[str]:
    """The texts of a block, whatever its type, elements of one line of rich text joined."""
    if depth > DEEPEST:
        return
    if block.get("type") in {"rich_text_section", "rich_text_preformatted", "rich_text_quote"}:
        yield "".join(_inline(element) for element in records(block, "elements"))
        return
    if words(block, "text"):
        yield words(block, "text")
    for name in ("text", "title"):
        yield from _inside(record(block, name), depth + 1)
    for name in ("fields", "elements"):
        for inner in records(block, name):
            yield from _inside(inner, depth + 1)


def _inline(element: Payload) -> str:
    """One element of a line: words, a link, an emoji, somebody's name."""
    for name, shape in (("text", "{}"), ("url", "{}"), ("name", ":{}:"), ("user_id", "<@{}>")):
        if words(element, name):
            return shape.format(words(element, name))
    return ""

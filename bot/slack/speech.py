"""What a person's words say about themselves: whether they speak to us, interrupt, wait, or stop. Pure.

Slack escapes `&`, `<` and `>` in `text` and writes mentions as `<@U…>`, groups as `<!subteam^S…>`
(https://docs.slack.dev/messaging/formatting-message-text/). A mention is real only as a `user` element of a
rich_text block that is not styled as code; a raw `<@U…>` in code fires `app_mention` all the same
(https://github.com/vercel/chat/pull/947).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.slack.payload import Payload, record, records, words
from bot.words.speech import asks_to_stop, cleaned, marker_of
from core.arrivals import Addressed, Marker

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
FIRST_MENTION = re.compile(r"\s*<(?:@(?P<user>[A-Z0-9]+)|!subteam\^[A-Z0-9]+)(?:\|[^>]*)?>")
AFTER_OUR_NAME = re.compile(r"\s*[:,]?\s*")
DEEPEST_NESTING = 20


@dataclass(frozen=True, slots=True)
class Speech:
    """A message's words, without our name in front, and what they ask for."""

    text: str
    marker: Marker
    addressed: Addressed
    mentions_us: bool
    asks_to_stop: bool


def understood(message: Payload, our_user: str) -> Speech:
    """Read one message."""
    raw = cleaned(words(message, "text"))
    addressed, rest = addressee(raw, our_user)
    text = unescaped(rest)
    return Speech(
        text=text if text.strip() else attached(message) or text,
        marker=marker_of(text),
        addressed=addressed,
        mentions_us=mentions(message, raw, our_user),
        asks_to_stop=asks_to_stop(rest, to_us=addressed is Addressed.BOT),
    )


def unescaped(text: str) -> str:
    """The words as they were typed; `&amp;` last, so that nothing is unescaped twice."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def addressee(raw: str, our_user: str) -> tuple[Addressed, str]:
    """Whom the words speak to, and the words without our own name in front."""
    found = FIRST_MENTION.match(raw)
    if found is None:
        return Addressed.NOBODY, raw
    if found["user"] != our_user:
        return Addressed.PERSON, raw
    rest = raw
    while found is not None and found["user"] == our_user:
        rest = AFTER_OUR_NAME.sub("", rest[found.end() :], count=1)
        found = FIRST_MENTION.match(rest)
    return Addressed.BOT, rest


def mentions(message: Payload, raw: str, our_user: str) -> bool:
    """Whether we are really mentioned, anywhere in the message."""
    rich = [block for block in records(message, "blocks") if block.get("type") == "rich_text"]
    if rich:
        return any(user == our_user for block in rich for user in named_users(block))
    return re.search(rf"<@{re.escape(our_user)}(?:\|[^>]*)?>", CODE.sub(" ", raw)) is not None


def named_users(block: Payload, depth: int = 0) -> Iterator[str]:
    """The users that a rich_text block mentions outside code."""
    if block.get("type") == "rich_text_preformatted" or depth > DEEPEST_NESTING:
        return
    if block.get("type") == "user" and not record(block, "style").get("code"):
        yield words(block, "user_id")
    for element in records(block, "elements"):
        yield from named_users(element, depth + 1)


def attached(message: Payload) -> str:
    """A short line that names files and attachments, for a message that has no words of its own."""
    named = [words(file, "title") or words(file, "name") or "file" for file in records(message, "files")]
    named += [
        words(a, "title") or words(a, "fallback") or "attachment" for a in records(message, "attachments")
    ]
    if not named:
        return ""
    shown = ", ".join(unescaped(cleaned(name[:80])).replace("\n", " ") for name in named[:10])
    return f"[attached: {shown}]"

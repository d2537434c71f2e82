"""What people type, as Slack stores it: escaped text and the rich_text block beside it.

`@Name` of somebody known becomes a real mention. Within `code` it stays a raw `<@U…>`, which still
fires app_mention though no user element stands in the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.servers.slack.shapes import Json

PIECE = re.compile(r"(?P<code>`[^`\n]+`)|@(?P<name>\w+)")
Known = Callable[[str], str | None]


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def spoken(text: str, known: Known) -> tuple[str, list[Json]]:
    """Slack's text and blocks for what was typed; `known` gives the id behind a name."""
    stored: list[str] = []
    elements: list[Json] = []

    def plain(words: str) -> None:
        if words:
            stored.append(escaped(words))
            elements.append({"type": "text", "text": words})

    at = 0
    for found in PIECE.finditer(text):
        name = found["name"]
        if name is not None and known(name) is None:
            continue
        plain(text[at : found.start()])
        at = found.end()
        if name is not None:
            stored.append(f"<@{known(name)}>")
            elements.append({"type": "user", "user_id": known(name)})
        else:
            code = _with_raw_mentions(found["code"][1:-1], known)
            stored.append(f"`{code}`")
            elements.append({"type": "text", "text": code, "style": {"code": True}})
    plain(text[at:])
    section = {"type": "rich_text_section", "elements": elements}
    return "".join(stored), [{"type": "rich_text", "elements": [section]}]


def _with_raw_mentions(code: str, known: Known) -> str:
    pieces = re.split(r"@(\w+)", code)
    shown = [escaped(pieces[0])]
    for name, rest in zip(pieces[1::2], pieces[2::2], strict=True):
        user = known(name)
        shown.append(f"<@{user}>" if user else f"@{name}")
        shown.append(escaped(rest))
    return "".join(shown)

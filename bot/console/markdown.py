"""Markdown as the model writes it → HTML in which nothing of it is HTML. Pure.

Rule 1: raw HTML stays text, and pictures are not loaded.
Rule 2: a link is shown with its address and leads nowhere: a click must not carry off what the model put in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from bot.console.html import Html, tag


@cache
def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True})
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.add_render_rule("link_open", _link_open)
    markdown.add_render_rule("link_close", _link_close)
    return markdown


def to_html(text: str) -> Html:
    """The whole text."""
    return tag("div", Html(_renderer().render(text)), class_="md")


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return f'<span class="link" title="{escape(str(tokens[at].attrs.get("href", "")))}">'


def _link_close(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    opening = next(token for token in reversed(tokens[:at]) if token.type == "link_open")
    address, said = str(opening.attrs.get("href", "")), tokens[at - 1].content
    shown = "" if address == said else tag("span", f" ({address})", class_="address")
    return f"{shown}</span>"

"""HTML that is escaped unless it was made here. Pure."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

VOID = frozenset({"input", "meta", "link", "img", "br", "hr"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Part: TypeAlias = "str | Html | list[Html] | None"
Value: TypeAlias = "str | int | bool | None"


def tag(element: str, /, *parts: Part, attrs: dict[str, Value] | None = None, **named: Value) -> Html:
    """An element. `class_` is `class`, `aria_label` `aria-label`; False and None leave an attribute out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in named.items()} | (attrs or {})
    shown = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value))}"'
        for key, value in given.items()
        if value is not None and value is not False
    )
    if element in VOID:
        return Html(f"<{element}{shown}>")
    return Html(f"<{element}{shown}>{joined(*parts)}</{element}>")


def joined(*parts: Part) -> Html:
    """Parts one after the other, escaped where they are not HTML."""
    return Html("".join(_part(part) for part in parts))


def _part(part: Part) -> str:
    match part:
        case None:
            return ""
        case list():
            return "".join(part)
        case Html():
            return part
        case _:
            return escape(part)

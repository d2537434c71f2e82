"""Text and JSON that every provider takes: no lone surrogates, no NUL.

A lone surrogate makes the whole body invalid ("no low surrogate in string", anthropics/claude-code#68325):
models emit them in inputs, and cutting a text in the middle of a sign makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.history import Json

_REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """The text with halves of signs joined where both are there, and replaced where one is alone."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean(value: Json) -> Json:
    """The same, for every text in a JSON value; mappings and sequences come back as dicts and lists."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value

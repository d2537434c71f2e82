"""What cannot be answered, in Prometheus' own words where it has some."""

from __future__ import annotations


class PromqlError(Exception):
    """`kind` is Prometheus' errorType."""

    kind = "execution"


class ParseError(PromqlError):
    """The query is none; says line and character as Prometheus does."""

    kind = "bad_data"

    def __init__(self, text: str, position: int, message: str) -> None:
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        super().__init__(f"{line}:{column}: parse error: {message}")

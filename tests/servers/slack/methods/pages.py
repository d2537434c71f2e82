"""Pagination: `limit` and an opaque `cursor`."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeVar

from tests.servers.slack.args import Args
from tests.servers.slack.shapes import Json, Refused

Item = TypeVar("Item")


def page(items: Sequence[Item], args: Args, default: int, most: int = 1000) -> tuple[list[Item], Json]:
    """The asked-for slice, and the `response_metadata` that leads to the next one."""
    limit = args.number("limit", default)
    if not 1 <= limit <= most:
        raise Refused("invalid_limit")
    start = _start(args.text("cursor"))
    end = start + limit
    cursor = _cursor(end) if end < len(items) else ""
    return list(items[start:end]), {"next_cursor": cursor}


def _cursor(at: int) -> str:
    return base64.b64encode(f"next:{at}".encode()).decode()


def _start(cursor: str | None) -> int:
    if not cursor:
        return 0
    try:
        word, _, at = base64.b64decode(cursor, validate=True).decode().partition(":")
        if word != "next":
            raise ValueError(cursor)
        return int(at)
    except ValueError:
        raise Refused("invalid_cursor") from None

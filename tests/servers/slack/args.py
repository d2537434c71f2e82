"""The arguments of a call, whichever way they were sent."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.slack.shapes import Json, Refused

TRUE = frozenset({True, "1", "true", "True"})


class Args:
    """Typed looks at raw arguments: forms carry strings where JSON carries values."""

    def __init__(self, raw: Json) -> None:
        self.raw = raw

    def text(self, name: str) -> str | None:
        value = self.raw.get(name)
        return None if value is None else str(value)

    def need(self, name: str, error: str = "invalid_arguments") -> str:
        value = self.text(name)
        if not value:
            more = {"response_metadata": {"messages": [f"[ERROR] missing required field: {name}"]}}
            raise Refused(error, **(more if error == "invalid_arguments" else {}))
        return value

    def flag(self, name: str) -> bool:
        value = self.raw.get(name)
        return isinstance(value, (bool, int, str)) and value in TRUE

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.raw.get(name) or default)
        except (TypeError, ValueError):
            raise Refused("invalid_arguments") from None

    def value(self, name: str, error: str) -> Any:
        """A JSON value, parsed if it came as a string."""
        value = self.raw.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError:
            raise Refused(error) from None


async def parsed(request: web.Request) -> tuple[Json, bytes]:
    """Query, form, multipart or JSON as one mapping, and the bytes as they came."""
    args: Json = dict(request.query)
    raw = await request.read()
    if request.content_type == "application/json":
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            raise Refused("invalid_json") from None
        if not isinstance(body, dict):
            raise Refused("json_not_object")
        return args | body, raw
    if request.method == "POST":
        form = await request.post()
        args |= {k: v.filename if isinstance(v, web.FileField) else v for k, v in form.items()}
    return args, raw

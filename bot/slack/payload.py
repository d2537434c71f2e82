"""Careful looks into payloads from outside: whatever is missing or of the wrong type reads as empty."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from core.history import Json

Payload: TypeAlias = Mapping[str, Json]

TIMESTAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}", re.ASCII)
IDENTIFIER = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)


def record(payload: object, *path: str) -> Payload:
    """The object at the end of the path, or an empty one."""
    found = payload
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def records(payload: Payload, name: str) -> list[Payload]:
    """The objects of a list, leaving out whatever else stands in it."""
    found = payload.get(name)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def words(payload: Payload, name: str) -> str:
    """A text of any length."""
    found = payload.get(name)
    return found if isinstance(found, str) else ""


def identifier(payload: Payload, *names: str) -> str:
    """The first of the named fields that holds a usable id."""
    for name in names:
        found = payload.get(name)
        if isinstance(found, str) and IDENTIFIER.fullmatch(found):
            return found
    return ""


def timestamp(payload: Payload, *names: str) -> str:
    """The first of the named fields that reads like a message timestamp, which is also a message's id."""
    return next((found for name in names if TIMESTAMP.fullmatch(found := identifier(payload, name))), "")


def is_sound(body: object) -> bool:
    """Whether a body has the outer shape on which Bolt relies; of any other it would ask Slack for more."""
    if not isinstance(body, Mapping):
        return False
    event, listed = body.get("event", {}), body.get("authorizations") or []
    if not isinstance(event, Mapping) or not isinstance(listed, list):
        return False
    named = (event.get(name) for name in ("user", "channel", "team", "item", "message"))
    whole = all(one is None or isinstance(one, str | Mapping) for one in named)
    return whole and all(isinstance(one, Mapping) for one in listed)

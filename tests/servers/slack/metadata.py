"""Message metadata: `event_type` and `event_payload`, and what Slack refuses in them."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.servers.slack.shapes import Json, Refused

MOST_BYTES = 8_000
EVENT_TYPE = re.compile(r"[A-Za-z0-9_-]+\Z")


def checked_metadata(value: Any) -> tuple[Json | None, list[str]]:
    """The metadata to store and the warnings; `{}` stores none."""
    if value is None or value == {}:
        return None, []
    if not isinstance(value, dict) or set(value) - {"event_type", "event_payload"}:
        raise Refused("invalid_metadata_format")
    event_type, payload = value.get("event_type"), value.get("event_payload")
    if not isinstance(event_type, str) or not event_type or not isinstance(payload, dict):
        raise Refused("invalid_metadata_format")
    if not _storable(payload):
        raise Refused("invalid_metadata_format")
    if len(json.dumps(value).encode()) > MOST_BYTES:
        raise Refused("metadata_too_large")
    if not EVENT_TYPE.match(event_type):
        # Slack warns, drops the metadata and posts the message all the same.
        return None, ["invalid_metadata_schema"]
    return value, []


def _storable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_storable(inner) for inner in value.values())
    if isinstance(value, list):
        return all(isinstance(inner, dict) and _storable(inner) for inner in value)
    return isinstance(value, (str, int, float, bool))

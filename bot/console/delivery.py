"""What a person did, as it is kept until it was accepted. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bot.ports import Incoming
from core.arrivals import Addressed, Arrival, Deletion, Edit, Marker, Source, Thread

FORMS: dict[str, type[Arrival] | type[Edit] | type[Deletion]] = {
    "arrival": Arrival,
    "edit": Edit,
    "deletion": Deletion,
}
WORDS: dict[str, Any] = {"source": Source, "marker": Marker, "addressed": Addressed}


def to_json(incoming: Incoming) -> str:
    """As it is stored."""
    return json.dumps({"form": type(incoming).__name__.lower(), **asdict(incoming)}, ensure_ascii=False)


def from_json(text: str) -> Incoming:
    """As it was stored."""
    found: dict[str, Any] = json.loads(text)
    form = FORMS[found.pop("form")]
    values = {name: WORDS[name](value) if name in WORDS else value for name, value in found.items()}
    return form(**{**values, "thread": Thread(**found["thread"])})

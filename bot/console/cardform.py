"""A card as JSON and back: the channel keeps cards as they were shown, and draws them when somebody looks."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from core.card import Card, CardLine, CardState, LineState
from core.reasons import Reason
from core.usage import Usage


def to_json(card: Card) -> str:
    """The card as it is stored."""
    return json.dumps(asdict(card), ensure_ascii=False)


def from_json(text: str) -> Card:
    """The card that was stored."""
    found: dict[str, Any] = json.loads(text)
    reason = found.pop("reason")
    lines = found.pop("lines")
    return Card(
        state=CardState(found.pop("state")),
        lines=tuple(CardLine(**{**line, "state": LineState(line["state"])}) for line in lines),
        steered_by=tuple(found.pop("steered_by")),
        usage=Usage(**found.pop("usage")),
        reason=Reason(reason) if reason else None,
        **found,
    )

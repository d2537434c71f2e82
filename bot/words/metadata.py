"""What every message of ours says about itself, the same on every platform (contract §4). Pure."""

from __future__ import annotations

from bot.ports import Post
from core.card import Card, CardState
from core.history import Json

CARD_EVENT = "watchkeeper_card"
ANSWER_EVENT = "watchkeeper_answer"
NOTE_EVENT = "watchkeeper_note"
ANSWER = "answer"


def of_card(card: Card) -> tuple[str, dict[str, Json]]:
    """The event type and payload of a card."""
    reason = card.reason.value if card.reason is not None and card.state is CardState.RELEASED else None
    return CARD_EVENT, known({"turn_id": card.turn_id, "state": card.state.value, "reason": reason})


def of_post(post: Post) -> tuple[str, dict[str, Json]]:
    """The event type and payload of any other message; a part of a long note says so too."""
    several = post.parts > 1 or post.kind == ANSWER
    payload: dict[str, Json] = {
        "turn_id": post.turn_id,
        "final_event_id": post.final_event_id,
        "kind": None if post.kind == ANSWER else post.kind,
        "part": post.part if several else None,
        "parts": post.parts if several else None,
        "post_id": post.post_id,
    }
    return (ANSWER_EVENT if post.kind == ANSWER else NOTE_EVENT), known(payload)


def known(payload: dict[str, Json]) -> dict[str, Json]:
    """Without what is not known: no platform is given a null."""
    return {name: value for name, value in payload.items() if value is not None}

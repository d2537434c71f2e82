"""The catalogue of models: what each accepts."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelCard:
    id: str
    window: int = 1_000_000
    max_output: int = 128_000
    prefill: bool = False

    def info(self) -> dict[str, Any]:
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.id.replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": self.window,
            "max_tokens": self.max_output,
        }


CATALOGUE = {
    card.id: card
    for card in (
        ModelCard("claude-opus-5-5"),
        ModelCard("claude-sonnet-5-5"),
        ModelCard("claude-haiku-5-5"),
        ModelCard("claude-opus-4-8"),
        ModelCard("claude-opus-4-6"),
        ModelCard("claude-sonnet-4-6"),
        ModelCard("claude-opus-4-5", window=200_000, max_output=64_000, prefill=True),
        ModelCard("claude-sonnet-4-5", window=200_000, max_output=64_000, prefill=True),
        ModelCard("claude-haiku-4-5", window=200_000, max_output=64_000, prefill=True),
    )
}


def card_of(model: str) -> ModelCard | None:
    """A Claude model that is not listed gets a card of today's kind; any other name is unknown."""
    if model in CATALOGUE:
        return CATALOGUE[model]
    undated = model.rpartition("-")[0]
    if undated in CATALOGUE and model[len(undated) + 1 :].isdigit() and len(model) - len(undated) == 9:
        return CATALOGUE[undated]
    return ModelCard(model) if model.startswith("claude-") else None

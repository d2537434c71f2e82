"""The catalogue of models: what each accepts."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelCard:
    id: str
    window: int = 1_000_000
    max_output: int = 128_000
    prefill: bool = False
    thinking: frozenset[str] = frozenset({"adaptive", "between_tools"})
    """The ways of thinking that it takes beside `disabled`."""
    sampling: bool = False
    """Whether temperature, top_p and top_k may be set."""

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


MANUAL = frozenset({"enabled"})
BOTH = frozenset({"enabled", "adaptive"})

CATALOGUE = {
    card.id: card
    for card in (
        ModelCard("claude-opus-5-5"),
        ModelCard("claude-sonnet-5-5"),
        ModelCard("claude-haiku-5-5"),
        ModelCard("claude-opus-4-8"),
        ModelCard("claude-opus-4-6", thinking=BOTH, sampling=True),
        ModelCard("claude-sonnet-4-6", thinking=BOTH, sampling=True),
        *(
            ModelCard(name, 200_000, 64_000, prefill=True, thinking=MANUAL, sampling=True)
            for name in ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5")
        ),
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

"""The language model of a process, as its settings ask for it."""

from __future__ import annotations

from typing import Protocol

from bot.model.anthropic import AnthropicModel
from bot.ports import Model
from bot.settings import Settings

MAX_ANSWER_TOKENS = 8_192


class ClosableModel(Model, Protocol):
    """A model that holds connections."""

    async def close(self) -> None:
        """Close all connections."""
        ...


def build_model(settings: Settings) -> ClosableModel:
    """Anthropic's with a key for it, else the rehearsal: `serve` refuses to start without a key."""
    env, section = settings.env, settings.file.model
    if env.anthropic_api_key is None:
        from bot.model.rehearsal.model import RehearsalModel  # noqa: PLC0415 - not needed with a key

        return RehearsalModel()
    return AnthropicModel(
        section.name,
        api_key=env.anthropic_api_key.get_secret_value(),
        base_url=env.anthropic_base_url,
        max_tokens=MAX_ANSWER_TOKENS,
        idle_timeout_s=section.idle_timeout_s,
    )

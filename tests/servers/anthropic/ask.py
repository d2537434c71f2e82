"""A request as the rules see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.servers.anthropic.context import Context
from tests.servers.anthropic.history import Spot, Turn, spots_of, turns_of
from tests.servers.anthropic.memory import Memory
from tests.servers.anthropic.models import ModelCard, card_of


@dataclass(frozen=True)
class Ask:
    body: Mapping[str, Any]
    context: Context = field(default_factory=Context)
    memory: Memory = field(default_factory=Memory)
    version: str = "2026-10-21"
    beta: bool = False
    counting: bool = False
    """A request to count tokens needs no max_tokens and takes fewer keys."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return self.body["messages"]  # type: ignore[no-any-return]  # The shape rules have passed.

    @cached_property
    def spots(self) -> list[Spot]:
        return spots_of(self.messages)

    @cached_property
    def turns(self) -> list[Turn]:
        return turns_of(self.messages, fold=self.context.folds_turns)

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        tools = self.body.get("tools")
        return [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []

    @property
    def tool_names(self) -> list[str]:
        return [str(tool.get("name")) for tool in self.tools]

    @property
    def thinking(self) -> str:
        """`enabled`, `adaptive`, `between_tools` or `disabled`."""
        thinking = self.body.get("thinking") or {}
        return str(thinking.get("type", "disabled"))

    @property
    def card(self) -> ModelCard:
        return card_of(str(self.body.get("model"))) or ModelCard("")

    @property
    def prefill(self) -> bool:
        return self.card.prefill if self.context.prefill is None else self.context.prefill

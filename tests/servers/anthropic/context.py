"""What a verdict depends on beside the request itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Deployment = Literal["first_party", "bedrock", "vertex"]


@dataclass(frozen=True, slots=True)
class Context:
    deployment: Deployment = "first_party"
    strict_split: bool = False
    """Refuse the results of one batch spread over several user messages; the first party folds them."""
    prefill: bool | None = None
    """Whether a final assistant message is accepted; None asks the model's card."""
    max_tool_name: int = 64
    strict_signatures: bool = False
    """Refuse thinking signatures that this server did not issue."""
    refuse_nul: bool = True
    """No provider is known to refuse NUL, but databases do, so a request with one is a fault of ours."""
    original: Sequence[Mapping[str, Any]] | None = None
    """The latest assistant message as the model sent it; None asks the server's memory."""
    image_px: tuple[int, int] | None = None
    image_count: int | None = None
    tokens: int | None = None
    max_tokens_window: int | None = None

    @property
    def folds_turns(self) -> bool:
        return self.deployment != "bedrock"

    @property
    def refuses_split(self) -> bool:
        return self.strict_split or self.deployment != "first_party"

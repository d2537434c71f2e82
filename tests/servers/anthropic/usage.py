"""The numbers of one request."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """The part of cache_write that was written to live an hour."""

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output

    def at_start(self) -> dict[str, Any]:
        """As `message_start` reports it, where only a first token or so has been generated."""
        return self.wire(output=min(self.output, 1))

    def at_end(self) -> dict[str, Any]:
        """As `message_delta` reports it: totals."""
        return {
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation_input_tokens": self.cache_write,
        }

    def wire(self, *, output: int | None = None) -> dict[str, Any]:
        return {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.cache_write,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_write - self.cache_write_1h,
                "ephemeral_1h_input_tokens": self.cache_write_1h,
            },
            "output_tokens": self.output if output is None else output,
            "service_tier": "standard",
        }

"""What a provider of tools is to the `ToolBox`, and the two ways in which a call that was cancelled can end.

Rule 1: a provider says what it knows. A call that was cancelled and ends in `CancelledError` has stopped;
one that ends in `MayGoOn` was asked to stop and did not confirm it.
Rule 2: a provider need not redact, bound or time anything: the runner does that for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.history import Json
from core.tools import Chart, ToolSpec


class MayGoOn(Exception):
    """The call was asked to stop, and nothing says that it did."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a provider has to say about one call, raw: neither redacted nor bounded yet."""

    text: str
    is_error: bool = False
    query: str = ""
    time_range: str = ""
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a provider is told beside the input.

    `call_id` is the same when a call is repeated. `progress` takes a line of what the call had so far, to be
    shown when it is stopped or runs out of time.
    """

    call_id: str
    progress: Callable[[str], None]


class Provider(Protocol):
    """A source of tools: a built-in one, or one MCP server."""

    @property
    def name(self) -> str:
        """The name under which people know it, for logs and for the line that says that it is missing."""
        ...

    async def start(self) -> None:
        """Begin to connect; returns at once and raises nothing."""
        ...

    async def ready(self, deadline: float) -> str | None:
        """Wait until the tools are there or have failed; None, or one line that says what is missing and why.

        `deadline` is a time of the running loop's clock, past which the answer is given whatever it is.
        """
        ...

    def specs(self) -> Sequence[ToolSpec]:
        """The tools that can be called now, in a stable order."""
        ...

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Run one call whose arguments fit the schema. Cancelled in a hurry, or when the time is up."""
        ...

    async def close(self) -> None:
        """Give back connections and processes; calls under way end."""
        ...

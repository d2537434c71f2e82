"""All tools of this process behind the `Tools` port: their names, their overrides, and where a call goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import structlog

from bot.ports import Hurry, ToolCall
from bot.tools.arguments import Schemas
from bot.tools.provider import Provider
from bot.tools.run import GRACE_S, Runner
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolOverride, ToolSpec, overridden

log = structlog.get_logger()

READY_LIMIT_S = 120.0  # no provider holds up the first request longer, whatever its own limit


class ToolBox:
    """Implements `bot.ports.Tools` over any number of providers. Start it once, close it once."""

    def __init__(
        self,
        providers: Sequence[Provider],
        redactor: Redactor,
        overrides: Mapping[str, ToolOverride] | None = None,
        *,
        grace_s: float = GRACE_S,
        ready_limit_s: float = READY_LIMIT_S,
    ) -> None:
        self._providers = tuple(providers)
        self._redactor = redactor
        self._overrides = dict(overrides or {})
        self._runner = Runner(redactor, grace_s)
        self._schemas = Schemas()
        self._ready_limit_s = ready_limit_s
        self._told: set[str] = set()

    async def start(self) -> None:
        """Let every provider begin to connect."""
        for provider in self._providers:
            await provider.start()

    async def ready(self) -> list[str]:
        """One line for each provider whose tools are missing, once all are connected or have failed."""
        return [line for _, line in await self.report() if line is not None]

    async def report(self) -> list[tuple[str, str | None]]:
        """Each provider's name with None, or the line that says what is wrong; for `watchkeeper doctor`."""
        deadline = asyncio.get_running_loop().time() + self._ready_limit_s
        lines = await asyncio.gather(
            *(provider.ready(deadline) for provider in self._providers), return_exceptions=True
        )
        return [
            (provider.name, self._line(provider, line))
            for provider, line in zip(self._providers, lines, strict=True)
        ]

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that can be called now: providers in the order given, each one's tools in its own."""
        return tuple(spec for spec, _ in self._table().values())

    async def run(self, call: ToolCall, hurry: Hurry) -> CallResult:
        """Prepare, execute, close: see `bot.tools.run`."""
        table = self._table()
        if call.tool not in table:
            return CallResult(Outcome.ERROR, self._redactor.redact(_unknown(call.tool, list(table))))
        spec, provider = table[call.tool]
        fault = self._schemas.fault(spec.name, spec.schema, call.input)
        if fault is not None:
            return CallResult(Outcome.ERROR, self._redactor.redact(f"{spec.name} was not called: {fault}"))
        return await self._runner.run(call, spec, provider, hurry)

    async def close(self) -> None:
        """End calls, connections and processes."""
        await asyncio.gather(*(provider.close() for provider in self._providers), return_exceptions=True)
        await self._runner.close()

    def _table(self) -> dict[str, tuple[ToolSpec, Provider]]:
        table: dict[str, tuple[ToolSpec, Provider]] = {}
        for provider in self._providers:
            for spec in provider.specs():
                if spec.name in table:
                    self._tell("tool_name_taken", spec.name, provider=provider.name)
                    continue
                table[spec.name] = (self._overridden(spec), provider)
        return table

    def _overridden(self, spec: ToolSpec) -> ToolSpec:
        override = self._overrides.get(spec.name)
        if override is None:
            return spec
        try:
            return overridden(spec, override)
        except ValueError as error:
            # The class of an MCP tool is known only now. What is left of the section still counts.
            self._tell("tool_override_refused", spec.name, why=str(error))
            return overridden(spec, replace(override, interruptible=None))

    def _tell(self, event: str, tool: str, **fields: str) -> None:
        """Log something that is true on every look only once."""
        if (key := f"{event} {tool}") not in self._told:
            self._told.add(key)
            log.warning(event, tool=tool, **fields)

    def _line(self, provider: Provider, line: str | BaseException | None) -> str | None:
        if isinstance(line, BaseException):
            line = f"{provider.name}: {type(line).__name__}"
        return None if line is None else self._redactor.redact(line)


def _unknown(tool: str, names: list[str]) -> str:
    bare = tool.rpartition("__")[2]
    near = (
        get_close_matches(tool, names, n=3, cutoff=0.5)
        or [name for name in names if bare and bare in name][:3]
    )
    if near:
        return f"there is no tool {tool!r}; did you mean {' or '.join(near)}?"
    return f"there is no tool {tool!r}; there are: {', '.join(names[:50]) or 'none at the moment'}"

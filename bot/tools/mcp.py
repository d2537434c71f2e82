"""The tools of one MCP server (`[[mcp]]`), over the official SDK.

Rule 1: each call carries `_meta["watchkeeper/call_id"]`, the same on a repeat.
Rule 2: a call under way when the server dies is an error that says whether it may have taken effect.
Rule 3: only an answer confirms that a cancelled call has stopped. The protocol lets a server be silent then
(https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation), and many are.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import cast

import mcp_types as types
import structlog
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from bot.tools.clean import one_line
from bot.tools.mcp_content import output
from bot.tools.mcp_link import Link, request_id
from bot.tools.mcp_specs import specs_by_name
from bot.tools.mcp_transport import McpEntry
from bot.tools.provider import CallContext, MayGoOn, ToolOutput
from core.history import Json
from core.redaction import Redactor
from core.tools import ToolClass, ToolSpec

log = structlog.get_logger()

CALL_ID = "watchkeeper/call_id"
CONFIRM_S = 0.9  # a little less than the runner's own grace
# HTTP 404 says that the session is not known (any more), so that the call was not carried out. The SDK hands
# on the server's own words for it where there are some.
# https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
SESSION_GONE = ("session terminated", "session not found", "invalid session", "unknown session")


class McpProvider:
    """A `Provider` for one entry. Its tools appear as `ENTRY__TOOL`."""

    def __init__(self, entry: McpEntry, redactor: Redactor) -> None:
        self.name = entry.name
        self._entry = entry
        self._link = Link(entry, redactor, self._listed)
        self._specs: Mapping[str, tuple[str, ToolSpec]] = {}
        self._ids = itertools.count(1_000_000)  # far from the numbers that the SDK gives its own requests

    async def start(self) -> None:
        """Begin to connect."""
        self._link.start()

    async def ready(self, deadline: float) -> str | None:
        """Wait for the server, at most its own `timeout_s` from the start of the outage."""
        await self._settled(deadline)
        if self._link.session is not None:
            return None
        return f"the tools of {self.name} are missing: {self._link.why}"

    def specs(self) -> Sequence[ToolSpec]:
        """The server's tools in its own order; none while it is away."""
        return [spec for _, spec in self._specs.values()]

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """One tools/call; see the rules above for how it can end."""
        if (known := self._specs.get(tool)) is None:
            return self._away(tool)
        remote, spec = known
        session = await self._session()
        if session is None:
            return self._away(tool)
        number = next(self._ids)
        request = asyncio.create_task(_call(session, number, remote, arguments, context), name=f"mcp {tool}")
        try:
            await asyncio.wait({request})
        except asyncio.CancelledError:
            return await self._cancelled(session, number, request, spec)
        finally:
            request.cancel()
        return self._answer(session, request, spec)

    async def close(self) -> None:
        """End the connection and the server."""
        await self._link.close()

    def _listed(self, tools: Sequence[types.Tool]) -> None:
        self._specs = specs_by_name(self.name, tools, self._entry.timeout_s)

    async def _settled(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._link.settled.wait()
        except TimeoutError:
            return

    async def _session(self) -> ClientSession | None:
        """The connection, waited for while it is being renewed."""
        if self._link.session is None:
            await self._settled(asyncio.get_running_loop().time() + self._entry.timeout_s)
        return self._link.session

    def _away(self, tool: str) -> ToolOutput:
        return ToolOutput(
            f"{tool} was not called: the server {self.name} is away, {self._link.why}", is_error=True
        )

    async def _cancelled(
        self, session: ClientSession, number: int, request: asyncio.Task[types.CallToolResult], spec: ToolSpec
    ) -> ToolOutput:
        """Ask the server to stop and give it a moment; an answer is taken, silence is `MayGoOn`."""
        asking = asyncio.create_task(_ask_to_stop(session, number))
        try:
            await asyncio.wait({request}, timeout=CONFIRM_S)
        finally:
            asking.cancel()
            request.cancel()
        if not request.done():
            raise MayGoOn(spec.name)
        error = None if request.cancelled() else request.exception()
        if error is None and not request.cancelled():
            return self._answer(session, request, spec)
        if isinstance(error, MCPError) and error.error.code != types.CONNECTION_CLOSED:
            raise asyncio.CancelledError  # it answered that it stopped
        raise MayGoOn(spec.name)

    def _answer(
        self, session: ClientSession, request: asyncio.Task[types.CallToolResult], spec: ToolSpec
    ) -> ToolOutput:
        try:
            return output(spec.name, request.result())
        except MCPError as error:
            return self._refused(session, error, spec)
        except ValidationError:
            text = f"{spec.name} answered something that is not a tool result{_effect(spec)}"
            return ToolOutput(text, is_error=True)

    def _refused(self, session: ClientSession, error: MCPError, spec: ToolSpec) -> ToolOutput:
        if error.error.code == types.CONNECTION_CLOSED:
            log.warning("mcp_call_lost", server=self.name, tool=spec.name)
            self._link.doubt(session)
            return ToolOutput(f"the server {self.name} died during this call{_effect(spec)}", is_error=True)
        if self._entry.url and any(words in error.error.message.lower() for words in SESSION_GONE):
            self._link.doubt(session)
            text = f"{spec.name} was not carried out: the server {self.name} had started anew. Try again."
            return ToolOutput(text, is_error=True)
        return ToolOutput(
            f"{spec.name} was refused by its server: {one_line(error.error.message)}", is_error=True
        )


async def _call(
    session: ClientSession, number: int, tool: str, arguments: dict[str, Json], context: CallContext
) -> types.CallToolResult:
    async def tell(progress: float, total: float | None, message: str | None) -> None:
        context.progress(message or (f"{progress:g} of {total:g}" if total else f"progress {progress:g}"))

    request_id.set(number)  # this runs in a task, and so in a context, of its own
    meta = cast("types.RequestParamsMeta", {CALL_ID: context.call_id})
    return await session.send_request(
        types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments, _meta=meta)),
        types.CallToolResult,
        progress_callback=tell,
    )


async def _ask_to_stop(session: ClientSession, number: int) -> None:
    params = types.CancelledNotificationParams(request_id=number, reason="no longer needed")
    await session.send_notification(types.CancelledNotification(params=params))


def _effect(spec: ToolSpec) -> str:
    match spec.tool_class:
        case ToolClass.READ_ONLY:
            return "; it only reads, so nothing was changed"
        case ToolClass.IDEMPOTENT:
            return "; it may have taken effect, and may be called again"
        case ToolClass.SIDE_EFFECT:
            return "; it may have taken effect: look before calling it again"

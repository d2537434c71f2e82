"""One connection to one MCP server: owned by one task, shared by all calls, renewed when it dies.

Rule 1: the SDK's cancel scopes are entered and left by the owning task alone (anyio asks for that).
Rule 2: a connection that ends wakes every call that waits on it; the owner makes the next one with back-off.
Rule 3: in each outage, `settled` is set once the server is connected, has failed for good, or has used up its
time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any, cast

import mcp_types as types
import structlog
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from bot.tools.clean import one_line
from bot.tools.mcp_transport import STDERR_LINES, McpEntry, connected, missing_command
from core.redaction import Redactor

log = structlog.get_logger()

BACK_OFF_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_AFTER_S = 1.0  # a connection that held so long starts the back-off anew
CLOSING_S = 8.0  # the SDK waits 2 s after closing stdin, 2 s after SIGTERM, 2 s after SIGKILL
PING_S = 5.0
MOST_PAGES = 100

request_id: ContextVar[int] = ContextVar("request_id")
"""The id under which the next tools/call of this task is sent, so that it can be cancelled by name."""


class Wire(JSONRPCDispatcher):
    """The SDK's dispatcher, which tells when it has ended, and leaves the cancelling of calls to us."""

    def __init__(self, reading: Any, writing: Any) -> None:
        super().__init__(reading, writing)
        self.ended = asyncio.Event()

    async def run(self, *args: Any, **kwargs: Any) -> None:
        """Drive the receive loop until the connection ends."""
        try:
            await super().run(*args, **kwargs)
        finally:
            self.ended.set()

    async def send_raw_request(
        self, method: str, params: Any, opts: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Send a request; a tools/call under our own id."""
        if method == "tools/call":
            opts = {**(opts or {}), "request_id": request_id.get(), "cancel_on_abandon": False}
        return await super().send_raw_request(method, params, opts, **kwargs)


def _let_a_cancel_through() -> None:
    """Whoever cancels this task means it, also where the SDK turned the cancel into an error of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Link:
    """Keeps one `[[mcp]]` entry connected."""

    def __init__(
        self, entry: McpEntry, redactor: Redactor, listed: Callable[[Sequence[types.Tool]], None]
    ) -> None:
        self.entry = entry
        self.session: ClientSession | None = None
        self.settled = asyncio.Event()
        self._redactor = redactor
        self._listed = listed
        self._said: deque[str] = deque(maxlen=STDERR_LINES)
        self._why = "not started"
        self._told = ""
        self._held_since: float | None = None
        self._wake = asyncio.Event()  # the list of tools changed, the wire ended, or we close
        self._stale_list = False
        self._doubted = False
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._patience: asyncio.TimerHandle | None = None

    @property
    def why(self) -> str:
        """Why there is no connection, in a few words."""
        return self._redactor.redact(self._why)

    def start(self) -> None:
        """Begin to connect."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.entry.name}")

    def doubt(self, session: ClientSession) -> None:
        """A call broke: over HTTP the server may live on or be gone. Nothing is sent until that is known."""
        if self.session is session:
            self.session = None
            self.settled.clear()
            self._doubted = True
            self._wake.set()

    async def close(self) -> None:
        """End the connection and, over stdio, the server."""
        self._closing.set()
        self._wake.set()
        if self._owner is not None:
            if self.session is None:
                self._owner.cancel()  # it waits for an answer, and looks at nothing else
            await asyncio.wait({self._owner}, timeout=CLOSING_S)
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=1)
        self._stop_waiting()

    # --- the owning task ---

    async def _own(self) -> None:
        loop = asyncio.get_running_loop()
        tries = 0
        while not self._closing.is_set():
            if self._patience is None and not self.settled.is_set():
                self._patience = loop.call_later(self.entry.timeout_s, self._out_of_time)
            self._held_since = None
            await self._connect_and_hold()
            if self._closing.is_set():
                break
            _let_a_cancel_through()
            tries = 0 if self._was_steady() else tries + 1
            if self._told != self._why:
                self._told = self._why
                log.warning("mcp_disconnected", server=self.entry.name, why=self.why)
            await self._pause(BACK_OFF_S[min(tries, len(BACK_OFF_S) - 1)])

    def _was_steady(self) -> bool:
        """Whether the last connection held for a while."""
        now = asyncio.get_running_loop().time()
        return self._held_since is not None and now - self._held_since > STEADY_AFTER_S

    async def _connect_and_hold(self) -> None:
        """One connection from its opening to its end; says in `_why` how it ended."""
        missing = missing_command(self.entry)
        if missing is not None:
            self._why = f"there is no program {missing!r}"
            self._gave_up()
            return
        self._said.clear()
        self._why = "does not answer"
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.entry.timeout_s):
                    session, wire = await self._open(stack)
                await self._hold(session, wire)
                self._why = "the connection ended"
        except TimeoutError:
            self._why = f"no answer within {self.entry.timeout_s:g} s"
        except Exception as error:  # noqa: BLE001 — the SDK and the server may raise anything; the link goes on
            self._why = _innermost(error)
        finally:
            self.session = None
        if self._said:
            self._why += f" (it said: {self._said[-1]})"

    async def _open(self, stack: AsyncExitStack) -> tuple[ClientSession, Wire]:
        reading, writing = await stack.enter_async_context(connected(self.entry, self._said, self._redactor))
        wire = Wire(reading, writing)
        session = ClientSession(dispatcher=wire, message_handler=self._on_message)
        await stack.enter_async_context(session)
        await _greet(session)
        self._listed(await _tools(session))
        return session, wire

    async def _hold(self, session: ClientSession, wire: Wire) -> None:
        """Stay until the connection ends, renewing the list of tools when the server says that it changed."""
        self.session, self._doubted, self._stale_list = session, False, False
        self._held_since = asyncio.get_running_loop().time()
        self._stop_waiting()
        self.settled.set()
        log.info("mcp_connected", server=self.entry.name, protocol=session.protocol_version)
        ended = asyncio.create_task(wire.ended.wait(), name=f"mcp {self.entry.name} end")
        ended.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if wire.ended.is_set() or self._closing.is_set():
                    return
                if self._doubted:
                    await self._ask_again(session)
                if self._stale_list:
                    self._stale_list = False
                    async with asyncio.timeout(self.entry.timeout_s):
                        self._listed(await _tools(session))
        finally:
            ended.cancel()
            self.session = None
            self.settled.clear()

    async def _ask_again(self, session: ClientSession) -> None:
        """Raises when the server is gone or has forgotten the session."""
        self._doubted = False
        async with asyncio.timeout(PING_S):
            try:
                await session.send_ping()
            except MCPError as error:
                if error.error.code != types.METHOD_NOT_FOUND:  # an answer too
                    raise
        self.session = session
        self.settled.set()

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        if self._closing.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                while not self._closing.is_set():
                    await self._wake.wait()
                    self._wake.clear()
        except TimeoutError:
            return

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._stale_list = True
            self._wake.set()

    def _out_of_time(self) -> None:
        self._patience = None
        self._gave_up()

    def _gave_up(self) -> None:
        """The tools count as missing from here on, until a later try succeeds."""
        self._stop_waiting()
        self._listed(())
        self.settled.set()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


async def _greet(session: ClientSession) -> None:
    """The handshake that every server up to 2025-11-25 knows; one that is only newer refuses it."""
    try:
        await session.initialize()
    except MCPError as refused:
        if refused.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


async def _tools(session: ClientSession) -> list[types.Tool]:
    found: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _innermost(error: BaseException) -> str:
    """The first cause inside groups of exceptions, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    message = one_line(str(error))
    if isinstance(error, MCPError) and error.error.code == types.CONNECTION_CLOSED:
        return "it ended before it answered"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__

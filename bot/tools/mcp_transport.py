"""The two ways to reach an MCP server, as transports of the SDK: a process under guard, or an address."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import structlog
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from bot.tools import guard
from bot.tools.clean import one_line
from core.redaction import Redactor

log = structlog.get_logger()

LONGEST_READ_S = 3_600.0  # a stream may be silent as long as the longest call; our own limits are shorter
STDERR_LINES = 5


@dataclass(frozen=True, slots=True)
class McpEntry:
    """One `[[mcp]]` entry of the configuration: `command` for stdio, or `url` for streamable HTTP."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    timeout_s: float = 30.0
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError(f"mcp.{self.name}: needs either `command` or `url`")


@asynccontextmanager
async def connected(
    entry: McpEntry, said: deque[str], redactor: Redactor
) -> AsyncIterator[tuple[object, object]]:
    """The streams of a fresh connection. `said` receives the last lines of the server's standard error."""
    if entry.url:
        timeout = httpx2.Timeout(entry.timeout_s, read=LONGEST_READ_S)
        # In a thread: it reads the certificates of all authorities.
        client = await asyncio.to_thread(create_mcp_http_client, timeout=timeout)
        async with client, streamable_http_client(entry.url, http_client=client) as streams:
            yield streams
        return
    async with _stderr(entry.name, said, redactor) as writing:
        with os.fdopen(writing, "w") as errlog:
            async with stdio_client(_guarded(entry), errlog=errlog) as streams:
                errlog.close()  # the server has its own end now; its end is the end of the pipe
                yield streams


def missing_command(entry: McpEntry) -> str | None:
    """The command's first word when there is no such program: that, waiting does not mend."""
    if not entry.command:
        return None
    path = entry.env.get("PATH", os.environ.get("PATH"))
    return None if shutil.which(entry.command[0], path=path) else entry.command[0]


def _guarded(entry: McpEntry) -> StdioServerParameters:
    """The server below `guard.py`, which is started by path: it needs no installed package."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-I", "-S", str(Path(guard.__file__)), "--parent", str(os.getpid()), "--", *entry.command],
        env=get_default_environment() | dict(entry.env),
        encoding_error_handler="replace",
    )


@asynccontextmanager
async def _stderr(name: str, said: deque[str], redactor: Redactor) -> AsyncIterator[int]:
    """A pipe for the server's standard error, whose lines are cleaned, redacted, logged; its writing end."""
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=65_536)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )

    async def listen() -> None:
        while line := await _line(reader):
            words = redactor.redact(one_line(line.decode(errors="replace"), 500))
            if words:
                said.append(words)
                log.debug("mcp_server_said", server=name, line=words)

    listening = asyncio.create_task(listen(), name=f"mcp {name} stderr")
    try:
        yield writing
    finally:
        await asyncio.wait({listening}, timeout=0.2)  # its last words are the interesting ones
        listening.cancel()
        transport.close()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or a piece of one that is too long; empty at the end."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as long:
        return await reader.readexactly(long.consumed)

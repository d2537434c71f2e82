"""A real MCP server whose tools behave well, badly and not at all, and which writes down every call.

    python tests/servers/mcp_probe.py --log FILE               stdio
    python tests/servers/mcp_probe.py --log FILE --http PORT   streamable HTTP at /mcp; 0: any free port

Each line of FILE is one JSON object, on disk before the call goes on:
    {"at", "pid", "tool", "args", "call_id", "event"}, event: started | finished | cancelled
A killed server leaves a call `started` and nothing more, so FILE proves how often a call began. Lines with
`tool` null are about the process: `up` (with `port` over HTTP) and `child` (with `child_pid`).

--spawn-child  starts a `sleep 1000` as a child.
--stay         outlives its standard input and ignores SIGTERM: only a kill ends it.
"""

import argparse
import base64
import functools
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

CALL_ID = "watchkeeper/call_id"
PROGRESS_EVERY_S = 0.1
LOOK_EVERY_S = 0.02

# In pieces, so that nothing which looks for leaked secrets finds any in this file.
SECRETS = {
    "aws": "AKIA" + "IOSFODNN7" + "WATCHKP",
    "github": "ghp_" + "0123456789abcdefghij" + "ABCDEFGHIJ012345",
    "slack": "xoxb-" + "123456789012-" + "210987654321-" + "AbCdEfGhIjKlMnOpQrStUvWx",
    "pem": "-----BEGIN RSA "
    + "PRIVATE KEY-----\n"
    + "MIIBOgIBAAJBAKj34GkxFhD9\n" * 4
    + "-----END RSA PRIVATE KEY-----",
}
WEIRD = (
    "nul:\x00 bell:\x07 backspace:\x08 escape:\x1b[31mred\x1b[0m title:\x1b]0;owned\x07 "
    "return:\rline feed:\nform feed:\x0c delete:\x7f c1:\x9b "
    "bidi:\u202egnp.exe\u202c isolate:\u2066hidden\u2069 zero width:a\u200bb\ufeff separator:\u2028 "
    "surrogate-like:\\ud800 \ufffd beyond:\U0001f525 noncharacter:\uffff "
    "markup:<!channel> <@U0123456789> &amp; *bold* ```fence```"
)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
STRUCTURE = {"service": "checkout", "healthy": False, "replicas": {"wanted": 3, "ready": 1}}

READ_ONLY = types.ToolAnnotations(read_only_hint=True)
SIDE_EFFECT = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False)
IDEMPOTENT = types.ToolAnnotations(read_only_hint=False, idempotent_hint=True)


@dataclass
class Call:
    """One call under way: what the caller sent, and the way to report progress."""

    context: ServerRequestContext[Any]
    args: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A text argument."""
        return str(self.args.get(name, ""))

    def number(self, name: str) -> float:
        """A number argument."""
        return float(self.args.get(name, 0))


Handler = Callable[[Call], Awaitable[types.CallToolResult]]


@dataclass
class Entry:
    """One tool as the table below holds it."""

    run: Handler
    description: str
    parameters: Mapping[str, str]
    annotations: types.ToolAnnotations | None
    output: Mapping[str, Any] | None = None


@dataclass
class Log:
    """The file of calls. A line is on disk when `write` returns."""

    path: Path | None

    def write(self, event: str, tool: str | None = None, **more: object) -> None:
        """Append one line."""
        if self.path is None:
            return
        line = json.dumps({"at": time.time(), "pid": os.getpid(), "tool": tool, "event": event, **more})
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def said(text: str, *, error: bool = False) -> types.CallToolResult:
    """A result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=error)


async def fast(call: Call) -> types.CallToolResult:
    """Echo."""
    return said(call.text("text"))


async def slow(call: Call) -> types.CallToolResult:
    """Take its time, say how far it is, stop when asked."""
    seconds = call.number("seconds")
    began = time.monotonic()
    while (spent := time.monotonic() - began) < seconds:
        await call.context.session.report_progress(spent, seconds, f"{spent:.1f} s of {seconds:g} s")
        await anyio.sleep(min(PROGRESS_EVERY_S, seconds - spent))
    return said(call.text("text"))


async def stubborn(call: Call) -> types.CallToolResult:
    """Take its time, whatever is asked meanwhile."""
    await anyio.sleep(call.number("seconds"))
    return said("finished as if nothing had been asked")


async def restart(call: Call) -> types.CallToolResult:
    """Stand for something that must not be done twice; the log counts."""
    return said(f"restarted {call.text('service')}")


async def set_flag(call: Call) -> types.CallToolResult:
    """Stand for something that may be done twice; the log counts."""
    return said(f"{call.text('name')} is {call.text('value')}")


async def big(call: Call) -> types.CallToolResult:
    """Exactly so many bytes, in numbered lines, so that a cut is seen where it was made."""
    size = int(call.number("bytes"))
    lines = "".join(f"line {number:010d}\n" for number in range(size // 16 + 1))
    return said(lines[:size])


async def weird(_call: Call) -> types.CallToolResult:
    """Text that no terminal, database or chat takes as it is."""
    return said(WEIRD)


async def secret(_call: Call) -> types.CallToolResult:
    """Values of the shapes that must never be stored or shown."""
    return said("\n".join(f"{name.upper()}_KEY={value}" for name, value in SECRETS.items()))


async def fail(call: Call) -> types.CallToolResult:
    """A tool's own error."""
    return said(call.text("message"), error=True)


async def die(_call: Call) -> types.CallToolResult:
    """The server is gone before the answer."""
    os.kill(os.getpid(), signal.SIGKILL)
    return said("never sent")


async def hang(_call: Call) -> types.CallToolResult:
    """Never answers; stops when asked."""
    await anyio.sleep_forever()
    return said("never sent")


async def image(_call: Call) -> types.CallToolResult:
    """A picture of one pixel."""
    picture = types.ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")
    return types.CallToolResult(content=[picture])


async def structured(_call: Call) -> types.CallToolResult:
    """The same facts as text and as structure."""
    text = types.TextContent(text=json.dumps(STRUCTURE))
    return types.CallToolResult(content=[text], structured_content=STRUCTURE)


async def hold(call: Call) -> types.CallToolResult:
    """Say that it is here by a file, and wait for another file before it goes on."""
    name, directory = call.text("name"), anyio.Path(call.text("directory"))
    await (directory / f"{name}.reached").touch()
    while not await (directory / f"{name}.release").exists():
        await anyio.sleep(LOOK_EVERY_S)
    return said(f"{name} was released")


STRUCTURE_SCHEMA = {
    "type": "object",
    "properties": {
        "service": {"type": "string"},
        "healthy": {"type": "boolean"},
        "replicas": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["service", "healthy", "replicas"],
}
HOLD = {"name": "string", "directory": "string"}

TOOLS: Mapping[str, Entry] = {
    "fast": Entry(fast, "Returns the text at once.", {"text": "string"}, READ_ONLY),
    "slow": Entry(
        slow, "Returns the text after so many seconds.", {"seconds": "number", "text": "string"}, READ_ONLY
    ),
    "stubborn": Entry(
        stubborn, "Takes so many seconds and cannot be stopped.", {"seconds": "number"}, READ_ONLY
    ),
    "restart": Entry(restart, "Restarts a service.", {"service": "string"}, SIDE_EFFECT),
    "set_flag": Entry(set_flag, "Sets a flag to a value.", {"name": "string", "value": "string"}, IDEMPOTENT),
    "plain": Entry(fast, "Returns the text; says nothing about itself.", {"text": "string"}, None),
    "big": Entry(big, "Returns so many bytes of text.", {"bytes": "integer"}, READ_ONLY),
    "weird": Entry(weird, "Returns text full of control characters.", {}, READ_ONLY),
    "secret": Entry(secret, "Returns values shaped like secrets.", {}, READ_ONLY),
    "fail": Entry(fail, "Fails with the message.", {"message": "string"}, READ_ONLY),
    "die": Entry(die, "Kills its own server.", {}, READ_ONLY),
    "hang": Entry(hang, "Never answers.", {}, READ_ONLY),
    "image": Entry(image, "Returns a small picture.", {}, READ_ONLY),
    "structured": Entry(structured, "Returns structured facts.", {}, READ_ONLY, STRUCTURE_SCHEMA),
    "hold": Entry(hold, "Waits until it is released.", HOLD, READ_ONLY),
    "hold_write": Entry(hold, "Waits until it is released; has side effects.", HOLD, SIDE_EFFECT),
}
SHIELDED = frozenset({"stubborn"})


def listed(name: str, entry: Entry) -> types.Tool:
    """A tool as clients see it."""
    schema = {
        "type": "object",
        "properties": {parameter: {"type": kind} for parameter, kind in entry.parameters.items()},
        "required": list(entry.parameters),
    }
    return types.Tool(
        name=name,
        description=entry.description,
        input_schema=schema,
        output_schema=dict(entry.output) if entry.output else None,
        annotations=entry.annotations,
    )


def call_id(context: ServerRequestContext[Any]) -> str | None:
    """The caller's id of the call, from the request's metadata."""
    meta: Mapping[str, object] = dict(context.meta or {})
    found = meta.get(CALL_ID)
    return None if found is None else str(found)


def make_server(log: Log) -> Server[Any]:
    """The server with its tools; every call passes through the log."""

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[listed(name, entry) for name, entry in TOOLS.items()])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        entry = TOOLS.get(params.name)
        if entry is None:
            return said(f"there is no tool {params.name}", error=True)
        args = params.arguments or {}
        note = functools.partial(log.write, tool=params.name, args=args, call_id=call_id(context))
        note("started")
        try:
            with anyio.CancelScope(shield=params.name in SHIELDED):
                result = await entry.run(Call(context, args))
        except anyio.get_cancelled_exc_class():
            note("cancelled")
            raise
        note("finished")
        return result

    return Server("probe", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(server: Server[Any], log: Log) -> None:
    """One client, over standard input and output."""
    async with stdio_server() as (reading, writing):
        log.write("up")
        await server.run(reading, writing, server.create_initialization_options())


async def serve_http(server: Server[Any], log: Log, port: int) -> None:
    """Any number of clients, at /mcp on the loopback."""
    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(
        server.streamable_http_app(), log_level="warning", lifespan="on", timeout_graceful_shutdown=1
    )
    log.write("up", port=listening.getsockname()[1])
    await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--log", type=Path, help="append every start and end of a call to this file")
    parser.add_argument("--http", type=int, metavar="PORT", help="streamable HTTP instead of stdio")
    parser.add_argument("--spawn-child", action="store_true", help="start a child that sleeps")
    parser.add_argument("--stay", action="store_true", help="outlive stdin and ignore SIGTERM")
    options = parser.parse_args()
    log = Log(options.log)
    if options.stay:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.spawn_child:
        child = subprocess.Popen(
            ["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        log.write("child", child_pid=child.pid)
    server = make_server(log)
    if options.http is None:
        anyio.run(serve_stdio, server, log)
    else:
        anyio.run(serve_http, server, log, options.http)
    while options.stay:
        time.sleep(1)


if __name__ == "__main__":
    main()

"""The MCP test server does what the stories lean on, seen through the official client on both transports."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, ImageContent, RequestParamsMeta, TextContent

from tests.servers import mcp_probe

PROGRAM = str(Path(mcp_probe.__file__))
PATIENCE_S = 10.0


def entries(log: Path) -> list[dict[str, Any]]:
    """The whole log so far."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def events(log: Path, tool: str) -> list[str]:
    """What happened to calls of one tool, in order."""
    return [entry["event"] for entry in entries(log) if entry["tool"] == tool]


async def until(true: Callable[[], bool]) -> None:
    """Wait for a named moment; a test that waits in vain says for what."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


def text_of(result: CallToolResult) -> str:
    """All text of a result."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def named(call_id: str) -> RequestParamsMeta:
    """Request metadata that carries our id of the call."""
    return cast(RequestParamsMeta, {mcp_probe.CALL_ID: call_id})


@dataclass
class Probe:
    """A connected client and the log of the server on the other side."""

    client: Client
    log: Path

    async def call(self, tool: str, **args: object) -> CallToolResult:
        """Call a tool by name."""
        return await self.client.call_tool(tool, args, meta=named(f"id-of-{tool}"))


def wait_until_up(process: subprocess.Popen[bytes], log: Path) -> None:
    """The server says in its log that it is up."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(entry["event"] == "up" for entry in entries(log)):
        assert process.poll() is None, "the server ended before it was up"
        assert time.monotonic() < deadline, "the server did not come up"
        time.sleep(0.02)


def started(log: Path, *options: str) -> subprocess.Popen[bytes]:
    """A server on HTTP that is up: its port is in the log."""
    process = subprocess.Popen([sys.executable, PROGRAM, "--log", str(log), "--http", "0", *options])
    wait_until_up(process, log)
    return process


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


@pytest.fixture
def server(transport: str, log: Path) -> Iterator[StdioServerParameters | str]:
    """How to reach a fresh server; over stdio the client starts it itself."""
    if transport == "stdio":
        yield StdioServerParameters(command=sys.executable, args=[PROGRAM, "--log", str(log)])
        return
    process = started(log)
    port = next(entry["port"] for entry in entries(log) if entry["event"] == "up")
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def connected(server: StdioServerParameters | str, log: Path) -> AsyncIterator[Probe]:
    """A client in the test's own task: its cancel scopes must be left where they were entered."""
    async with Client(server) as client:
        yield Probe(client, log)


async def test_each_tool_shows_the_class_it_was_made_for(
    server: StdioServerParameters | str, log: Path
) -> None:
    async with connected(server, log) as probe:
        tools = {tool.name: tool.annotations for tool in (await probe.client.list_tools()).tools}
    assert set(tools) == set(mcp_probe.TOOLS)
    assert tools["plain"] is None
    for name in ("fast", "slow", "stubborn", "hold"):
        hints = tools[name]
        assert hints is not None
        assert hints.read_only_hint is True
    for name, idempotent in (("restart", False), ("hold_write", False), ("set_flag", True)):
        hints = tools[name]
        assert hints is not None
        assert (hints.read_only_hint, hints.idempotent_hint) == (False, idempotent)


async def test_a_call_is_logged_with_the_id_its_caller_gave_it(
    server: StdioServerParameters | str, log: Path
) -> None:
    async with connected(server, log) as probe:
        assert text_of(await probe.call("fast", text="hello")) == "hello"
    lines = [entry for entry in entries(log) if entry["tool"] == "fast"]
    assert [line["event"] for line in lines] == ["started", "finished"]
    assert {line["call_id"] for line in lines} == {"id-of-fast"}
    assert lines[0]["args"] == {"text": "hello"}
    assert set(lines[0]) == {"at", "pid", "tool", "args", "call_id", "event"}


async def test_a_slow_call_says_how_far_it_is(server: StdioServerParameters | str, log: Path) -> None:
    said: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        said.append(message)

    async with connected(server, log) as probe:
        result = await probe.client.call_tool(
            "slow", {"seconds": 0.35, "text": "late"}, progress_callback=note
        )
    assert text_of(result) == "late"
    assert len(said) >= 3
    assert said[0] == "0.0 s of 0.35 s"


@pytest.mark.parametrize("tool", ["slow", "hang"])
async def test_a_call_that_can_be_stopped_stops_when_its_caller_gives_up(
    server: StdioServerParameters | str, log: Path, tool: str
) -> None:
    async with connected(server, log) as probe:
        call = asyncio.create_task(probe.call(tool, seconds=30, text="never"))
        await until(lambda: events(log, tool) == ["started"])
        call.cancel()
        await until(lambda: events(log, tool) == ["started", "cancelled"])
        with pytest.raises(asyncio.CancelledError):
            await call
        assert text_of(await probe.call("fast", text="still here")) == "still here"


async def test_a_stubborn_call_finishes_though_its_caller_gave_up(
    server: StdioServerParameters | str, log: Path
) -> None:
    async with connected(server, log) as probe:
        call = asyncio.create_task(probe.call("stubborn", seconds=0.5))
        await until(lambda: events(log, "stubborn") == ["started"])
        call.cancel()
        await until(lambda: events(log, "stubborn") == ["started", "finished"])
        with pytest.raises(asyncio.CancelledError):
            await call


@pytest.mark.parametrize("tool", ["hold", "hold_write"])
async def test_a_held_call_waits_for_its_release(
    server: StdioServerParameters | str, log: Path, tmp_path: Path, tool: str
) -> None:
    async with connected(server, log) as probe:
        call = asyncio.create_task(probe.call(tool, name="one", directory=str(tmp_path)))
        await until((tmp_path / "one.reached").exists)
        assert text_of(await probe.call("fast", text="meanwhile")) == "meanwhile"
        assert not call.done()
        (tmp_path / "one.release").touch()
        assert text_of(await call) == "one was released"


async def test_results_arrive_as_they_were_made(server: StdioServerParameters | str, log: Path) -> None:
    async with connected(server, log) as probe:
        assert text_of(await probe.call("weird")) == mcp_probe.WEIRD
        assert len(text_of(await probe.call("big", bytes=300_001))) == 300_001
        secrets = text_of(await probe.call("secret"))
        assert all(value in secrets for value in mcp_probe.SECRETS.values())
        picture = (await probe.call("image")).content[0]
        assert isinstance(picture, ImageContent)
        assert picture.mime_type == "image/png"
        assert (await probe.call("structured")).structured_content == mcp_probe.STRUCTURE
        assert text_of(await probe.call("plain", text="as is")) == "as is"
        assert text_of(await probe.call("restart", service="checkout")) == "restarted checkout"
        assert text_of(await probe.call("set_flag", name="dark", value="on")) == "dark is on"


async def test_a_failed_call_and_an_unknown_tool_are_errors_of_the_call_alone(
    server: StdioServerParameters | str, log: Path
) -> None:
    async with connected(server, log) as probe:
        failed = await probe.call("fail", message="no such host")
        assert (failed.is_error, text_of(failed)) == (True, "no such host")
        assert (await probe.call("no_such_tool")).is_error is True
        assert text_of(await probe.call("fast", text="fine")) == "fine"


async def test_a_server_that_dies_leaves_its_call_started_and_no_more(
    server: StdioServerParameters | str, log: Path
) -> None:
    # Over HTTP the official client does not fail the call alone: the whole connection breaks, as a group.
    with pytest.raises((MCPError, ExceptionGroup)):
        async with connected(server, log) as probe:
            await probe.call("die")
    assert events(log, "die") == ["started"]


def test_a_server_with_a_child_names_it_and_can_refuse_to_leave(log: Path) -> None:
    server = started(log, "--spawn-child", "--stay")
    child = psutil.Process(next(entry["child_pid"] for entry in entries(log) if entry["event"] == "child"))
    try:
        assert child.cmdline() == ["sleep", "1000"]
        assert child.ppid() == server.pid
        server.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(0.5)
    finally:
        server.kill()
        server.wait()
        child.kill()


@pytest.mark.parametrize("stays", [False, True])
def test_over_stdio_a_server_leaves_with_its_input_unless_told_to_stay(log: Path, stays: bool) -> None:
    options = ["--stay"] if stays else []
    command = [sys.executable, PROGRAM, "--log", str(log), *options]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        wait_until_up(server, log)
        assert server.stdin is not None
        server.stdin.close()
        if stays:
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(0.5)
        else:
            assert server.wait(PATIENCE_S) == 0
    finally:
        server.kill()
        server.wait()

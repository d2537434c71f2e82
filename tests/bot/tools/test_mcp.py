"""MCP servers over both transports: calls, interruption, death, renewal, and an end that leaves nothing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.ports import ToolCall
from bot.tools.mcp import McpProvider
from bot.tools.mcp_transport import McpEntry
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass, ToolOverride
from tests.servers import mcp_probe

PROGRAM = str(Path(mcp_probe.__file__))
pytestmark = pytest.mark.xdist_group("mcp")

HURRIED = {f"probe__{tool}": ToolOverride(interruptible=True) for tool in ("slow", "stubborn")}


class Probe:
    """A tool box with the probe behind it, and the probe's own log."""

    def __init__(
        self, entry: McpEntry, log: Path, overrides: Mapping[str, ToolOverride] | None = None
    ) -> None:
        redactor = Redactor(["known-secret-value"])
        self.provider = McpProvider(entry, redactor)
        self.box = ToolBox([self.provider], redactor, {**HURRIED, **(overrides or {})})
        self.log = log

    async def __call__(
        self, tool: str, hurry_after: float | None = None, call_id: str = "call_1", **arguments: Json
    ) -> CallResult:
        hurry = asyncio.Event()
        if hurry_after is not None:
            asyncio.get_running_loop().call_later(hurry_after, hurry.set)
        return await self.box.run(ToolCall(call_id, f"probe__{tool}", arguments), hurry)

    def lines(self, **wanted: object) -> list[dict[str, Any]]:
        """Lines of the probe's log that hold those values."""
        text = self.log.read_text() if self.log.exists() else ""
        found: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
        return [line for line in found if all(line.get(key) == value for key, value in wanted.items())]


async def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for a named moment."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


def stdio(log: Path, *more: str, timeout_s: float = 20) -> McpEntry:
    """The probe as an entry with a command."""
    return McpEntry("probe", (sys.executable, PROGRAM, "--log", str(log), *more), timeout_s=timeout_s)


@asynccontextmanager
async def connected(entry: McpEntry, log: Path, **overrides: ToolOverride) -> AsyncIterator[Probe]:
    """The probe, ready."""
    found = Probe(entry, log, overrides)
    await found.box.start()
    try:
        assert await found.box.ready() == []
        yield found
    finally:
        await found.box.close()


def serve(log: Path, port: int = 0) -> tuple[subprocess.Popen[bytes], int]:
    """The probe over HTTP as a process of its own, and its port."""
    process = subprocess.Popen([sys.executable, PROGRAM, "--log", str(log), "--http", str(port)])
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for line in log.read_text().splitlines() if log.exists() else []:
            if json.loads(line).get("port") and json.loads(line)["pid"] == process.pid:
                return process, int(json.loads(line)["port"])
        time.sleep(0.02)
    process.kill()
    raise AssertionError("the probe did not come up")


@pytest.fixture
async def probe(tmp_path: Path) -> AsyncIterator[Probe]:
    """Over stdio."""
    async with connected(stdio(tmp_path / "log"), tmp_path / "log") as found:
        yield found


async def test_every_kind_of_answer_comes_back_over_one_connection(probe: Probe) -> None:
    assert (await probe("fast", text="hi")).text == "hi"
    assert (await probe("fail", message="boom")).outcome is Outcome.ERROR
    picture = await probe("image")
    assert picture.charts[0].png == mcp_probe.PNG
    assert picture.charts[0].title == "probe__image"
    assert json.loads((await probe("structured")).text) == mcp_probe.STRUCTURE
    weird = (await probe("weird")).text
    assert "\x1b" not in weird
    assert "\u202e" not in weird
    secret = (await probe("secret")).text
    assert [value for value in mcp_probe.SECRETS.values() if value in secret] == []
    assert secret.count("[redacted:") == 4
    big = await probe("big", bytes=3_000_000)
    assert len(big.text.encode()) <= 65_536
    assert "bytes left out here" in big.text
    assert len(probe.lines(event="up")) == 1


async def test_classes_come_from_the_annotations_and_each_call_carries_its_id(probe: Probe) -> None:
    classes = {spec.name: (spec.tool_class, spec.interruptible) for spec in probe.box.specs()}
    assert classes["probe__slow"] == (ToolClass.READ_ONLY, True)  # by its override
    assert classes["probe__set_flag"] == (ToolClass.IDEMPOTENT, False)
    assert classes["probe__restart"] == (ToolClass.SIDE_EFFECT, False)
    assert classes["probe__plain"] == (ToolClass.SIDE_EFFECT, False)
    await probe("restart", call_id="toolu_01", service="checkout")
    assert [line["call_id"] for line in probe.lines(tool="restart", event="started")] == ["toolu_01"]


async def test_calls_share_the_connection_and_run_side_by_side(probe: Probe) -> None:
    began = time.monotonic()
    results = await asyncio.gather(
        *(probe("slow", call_id=f"c{n}", seconds=0.5, text=str(n)) for n in range(8))
    )
    assert [result.text for result in results] == [str(n) for n in range(8)]
    assert time.monotonic() - began < 2


async def test_a_hurried_call_is_cancelled_at_the_server_and_says_only_what_is_known(probe: Probe) -> None:
    """Over stdio a server of the SDK stops and stays silent, as the protocol lets it: nobody confirms."""
    result = await probe("slow", hurry_after=0.4, seconds=30, text="x")
    assert result.outcome is Outcome.ASKED_TO_STOP
    assert "What it had so far:\n0.0 s of 30 s\n0.1 s of 30 s" in result.text
    await until(lambda: bool(probe.lines(tool="slow", event="cancelled")))
    stubborn = await probe("stubborn", hurry_after=0.1, seconds=3)
    assert stubborn.outcome is Outcome.ASKED_TO_STOP
    assert (await probe("fast", text="still here")).text == "still here"


async def test_a_call_at_its_time_limit_is_cancelled_and_does_not_hold_up_anything(tmp_path: Path) -> None:
    override = ToolOverride(timeout_s=0.3)
    async with connected(stdio(tmp_path / "log"), tmp_path / "log", probe__hang=override) as probe:
        result = await probe("hang")
        assert result.outcome is Outcome.TIMED_OUT
        assert result.text == "no answer within 0.3 s, may still be running"
        await until(lambda: bool(probe.lines(tool="hang", event="cancelled")))
        assert (await probe("fast", text="on")).text == "on"


async def test_calls_under_way_when_the_server_dies_say_what_may_have_happened(
    probe: Probe, tmp_path: Path
) -> None:
    hold: dict[str, Json] = {"name": "a", "directory": str(tmp_path)}
    reads = asyncio.create_task(probe("hold", **hold))
    writes = asyncio.create_task(probe("hold_write", call_id="call_2", **hold))
    await until(lambda: len(probe.lines(event="started")) == 2)
    died = await probe("die")
    assert died.outcome is Outcome.ERROR
    assert died.text == "the server probe died during this call; it only reads, so nothing was changed"
    assert (await reads).text == died.text
    assert "it may have taken effect: look before calling it again" in (await writes).text
    assert (await probe("fast", text="new")).text == "new"
    assert len(probe.lines(event="up")) == 2
    assert len(probe.lines(tool="hold_write", event="started")) == 1


@pytest.mark.slow
async def test_the_server_and_its_children_end_with_close_and_are_not_waited_for_long(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio(log, "--spawn-child", "--stay"), log) as probe:
        child = int(probe.lines(event="child")[0]["child_pid"])
        server = int(probe.lines(event="up")[0]["pid"])
        began = time.monotonic()
    assert time.monotonic() - began < 6
    assert not [pid for pid in (child, server) if running(pid)]


def running(pid: int) -> bool:
    """Whether that process runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


WORKER = """
import asyncio, sys
from pathlib import Path
from bot.tools.mcp import McpProvider
from bot.tools.mcp_transport import McpEntry
from core.redaction import Redactor

async def main():
    provider = McpProvider(McpEntry("probe", tuple(sys.argv[1:])), Redactor([]))
    await provider.start()
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_the_server_and_its_children_end_when_the_worker_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, PROGRAM, "--log", str(log), "--spawn-child", "--stay"]
    worker = subprocess.Popen([sys.executable, "-c", WORKER, *command], cwd=Path(__file__).parents[3])
    probe = Probe(stdio(log), log)
    try:
        await until(lambda: bool(probe.lines(event="up")), 20)
        pids = [int(probe.lines(event="child")[0]["child_pid"]), int(probe.lines(event="up")[0]["pid"])]
        assert all(running(pid) for pid in pids)
    finally:
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    await until(lambda: not any(running(pid) for pid in pids), 2)


@pytest.mark.parametrize("ignoring", ["", "trap '' TERM; "], ids=["plain", "ignores SIGTERM"])
async def test_a_server_that_never_answered_does_not_hold_up_the_close(ignoring: str) -> None:
    provider = McpProvider(McpEntry("mute", ("sh", "-c", f"{ignoring}sleep 1000; :")), Redactor([]))
    before = asyncio.all_tasks()
    await provider.start()
    await until(lambda: any(child.name() == "sleep" for child in psutil.Process().children(recursive=True)))
    began = time.monotonic()
    await provider.close()
    assert time.monotonic() - began < 8
    assert asyncio.all_tasks() == before
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "sleep"]


@pytest.mark.slow
async def test_a_missing_program_is_named_at_once_and_a_broken_one_after_its_time(tmp_path: Path) -> None:
    redactor = Redactor(["known-secret-value"])
    broken = ("sh", "-c", "echo cannot read known-secret-value >&2; exit 3")
    box = ToolBox(
        [
            McpProvider(McpEntry("gone", ("no-such-program",)), redactor),
            McpProvider(McpEntry("broken", broken, timeout_s=3), redactor),
            McpProvider(McpEntry("mute", ("sleep", "60"), timeout_s=3), redactor),
        ],
        redactor,
    )
    await box.start()
    began = time.monotonic()
    gone, died, mute = await box.ready()
    assert 2.5 < time.monotonic() - began < 10
    assert gone == "the tools of gone are missing: there is no program 'no-such-program'"
    assert died.startswith("the tools of broken are missing: it ended before it answered")
    assert "(it said: cannot read [redacted:known_secret])" in died
    assert mute.startswith("the tools of mute are missing: ")
    assert box.specs() == ()
    await box.close()


@pytest.mark.slow
async def test_over_http_a_server_that_stops_says_so(tmp_path: Path) -> None:
    server, port = serve(tmp_path / "log")
    try:
        entry = McpEntry("probe", url=f"http://127.0.0.1:{port}/mcp")
        async with connected(entry, tmp_path / "log") as probe:
            assert (await probe("fast", text="hi")).text == "hi"
            result = await probe("slow", hurry_after=0.4, seconds=30, text="x")
            assert result.outcome is Outcome.STOPPED
            assert result.text.startswith("stopped after 0.4 s\nWhat it had so far:\n0.0 s of 30 s")
            assert (await probe("stubborn", hurry_after=0.1, seconds=2)).outcome is Outcome.ASKED_TO_STOP
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
async def test_over_http_a_server_that_comes_later_dies_or_forgets_us_is_found_again(tmp_path: Path) -> None:
    server, port = serve(tmp_path / "log")
    server.kill()
    server.wait()
    probe = Probe(McpEntry("probe", url=f"http://127.0.0.1:{port}/mcp", timeout_s=15), tmp_path / "log")
    await probe.box.start()
    await asyncio.sleep(0.3)
    server, _ = await asyncio.to_thread(serve, tmp_path / "log", port)
    try:
        assert await probe.box.ready() == []
        held = asyncio.create_task(probe("hold_write", name="a", directory=str(tmp_path)))
        await until(lambda: bool(probe.lines(tool="hold_write", event="started")))
        server.kill()
        server.wait()
        assert "it may have taken effect" in (await held).text
        server, _ = await asyncio.to_thread(serve, tmp_path / "log", port)
        assert (await probe("fast", text="again")).text == "again"
        server.kill()
        server.wait()
        server, _ = await asyncio.to_thread(serve, tmp_path / "log", port)
        forgotten = await probe("restart", service="checkout")
        assert "was not carried out" in forgotten.text
        assert probe.lines(tool="restart") == []
        assert (await probe("restart", service="checkout")).text == "restarted checkout"
    finally:
        await probe.box.close()
        server.kill()
        server.wait()

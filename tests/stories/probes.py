"""The tool server that stories share: started once for each interpreter, ended with it."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROBE = Path(__file__).parents[2] / "tests" / "servers" / "mcp_probe.py"
STARTS_WITHIN_S = 30.0


_running: list[tuple[subprocess.Popen[bytes], str, Path]] = []


def shared() -> tuple[str, Path]:
    """Its URL and its log; a new one when a story has killed it."""
    if not _running or _running[-1][0].poll() is not None:
        _running.append(_start())
    _, url, log = _running[-1]
    return url, log


def _start() -> tuple[subprocess.Popen[bytes], str, Path]:
    folder = tempfile.TemporaryDirectory(prefix="probe-")
    log = Path(folder.name) / "tools.jsonl"
    probe = subprocess.Popen([sys.executable, str(PROBE), "--log", str(log), "--http", "0"])

    def end() -> None:
        probe.kill()
        probe.wait()
        folder.cleanup()

    atexit.register(end)
    return probe, f"http://127.0.0.1:{_port(log)}/mcp", log


def _port(log: Path) -> int:
    ends = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < ends:
        if log.exists() and (lines := log.read_text().splitlines()):
            return int(json.loads(lines[0])["port"])
        time.sleep(0.05)
    raise AssertionError("the tool server did not start")

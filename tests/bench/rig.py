"""What the benchmarks share: a real `serve` process between the test servers, and medians."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.stories.room import free_port

ROOT = Path(__file__).parents[2]
START = "import sys; from bot import cli; sys.exit(cli.run(sys.argv[1:]))"


class Serve:
    """One `watchkeeper serve`, started as people start it; `beforehand` is Python that is run in it first."""

    def __init__(
        self, folder: Path, environment: dict[str, str], config: str = "", beforehand: str = ""
    ) -> None:
        self._program = ["-c", f"{beforehand}; {START}"] if beforehand else ["-m", "bot"]
        self.port = free_port()
        self.database = folder / "watchkeeper.db"
        self.log = folder / "watchkeeper.log"
        (folder / "watchkeeper.toml").write_text(config)
        self._folder = folder
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "DATABASE_URL": f"sqlite:///{self.database}",
            "WATCHKEEPER_CONFIG": str(folder / "watchkeeper.toml"),
            "WATCHKEEPER_PORT": str(self.port),
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self, within_s: float = 30) -> float:
        """Start it and wait until it is ready; returns the seconds from exec to a 200 of /readyz."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            command = [sys.executable, *self._program, "serve"]
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )
        while not await asyncio.to_thread(self._is_ready):
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() - began < within_s, self.log.read_text()
            await asyncio.sleep(0.005)
        return time.monotonic() - began

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Ask its database, beside it."""
        reader = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)
        try:
            return reader.execute(statement, values).fetchall()
        finally:
            reader.close()

    async def until(self, statement: str, wanted: int, within_s: float = 20) -> int:
        """Wait until the statement's number is what is wanted, or time is up; returns what it is then."""
        ends = time.monotonic() + within_s
        while (found := int(self.rows(statement)[0][0])) != wanted and time.monotonic() < ends:
            await asyncio.sleep(0.05)
        return found

    def stop(self) -> None:
        """End it at once: a benchmark leaves nothing to be kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def program(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program of this repository as a process of its own; its standard output is ours to read."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a program prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the program ended"
    return line.strip()


def quantile(samples: Sequence[float], q: float) -> float:
    """The sample that a share `q` of all does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def spread(samples: Sequence[float]) -> str:
    """p50 and p99 of milliseconds, for people."""
    return f"p50 {statistics.median(samples):6.1f}  p99 {quantile(samples, 0.99):6.1f} ms"


def verdict(name: str, found: float, aim: float, unit: str = "") -> str:
    """One line that says whether an aim was met in this run; nothing fails for it."""
    sign = "met" if found <= aim else "MISSED"
    return f"aim {sign}: {name} {found:.1f}{unit} (at most {aim:g}{unit})"


def at_least(name: str, found: float, aim: float, unit: str = "") -> str:
    """Like `verdict`, for what should be much."""
    sign = "met" if found >= aim else "MISSED"
    return f"aim {sign}: {name} {found:.2f}{unit} (at least {aim:g}{unit})"


def encoded(value: object) -> bytes:
    """JSON as Slack sends it."""
    return json.dumps(value).encode()

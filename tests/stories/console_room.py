"""A room for stories on the console: `watchkeeper local` as people start it, and the test model behind it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp

from core.history import Json
from storage import reports
from storage.engine import Database
from tests.invariants import broken
from tests.servers.anthropic.blocks import Block, call
from tests.servers.anthropic.server import AnthropicServer
from tests.stories.room import PROBE, ROOT, eventually, free_port

CONFIG = """
[worker]
poll_s = 0.2
gather_s = 0.05

[card]
min_interval_s = 0.1

[reaper]
every_s = 0.5
card_grace_s = 0.5

[[mcp]]
name = "shop"
command = {probe}
timeout_s = 30
"""


class ConsoleRoom:
    """The world of one story on the console. Enter it, then `start`."""

    def __init__(self, folder: Path, *, bundled: bool = False) -> None:
        """`bundled`: no key and no configuration, so the rehearsal model looks at the bundled incident."""
        self.folder = folder
        self._bundled = bundled
        self.model = AnthropicServer()
        self.port = free_port()
        self._stack = AsyncExitStack()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where the console is."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> ConsoleRoom:
        await self._stack.enter_async_context(self.model)
        self.http = await self._stack.enter_async_context(aiohttp.ClientSession())
        if self._bundled:
            return self
        probe = [sys.executable, str(PROBE), "--log", str(self.folder / "tools.jsonl")]
        (self.folder / "watchkeeper.toml").write_text(CONFIG.format(probe=json.dumps(probe)))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.model.let_events_go()
        self.release()
        await self.stop()
        await self._stack.aclose()

    async def start(self) -> ConsoleRoom:
        """Start it and wait for its first page."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            **({} if self._bundled else {"ANTHROPIC_API_KEY": "sk-ant-test"}),
            "ANTHROPIC_BASE_URL": self.model.url,
            "DATABASE_URL": f"sqlite:///{self.folder}/watchkeeper.db",
            "WATCHKEEPER_PORT": str(self.port),
        }
        log = (self.folder / "watchkeeper.log").open("ab")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot", "local", "--no-open",
            cwd=self.folder, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()
        await eventually(self._answers, timeout=30)
        return self

    async def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, self.log()
        try:
            async with self.http.get(f"{self.url}/healthz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def log(self) -> str:
        """What it logged."""
        return (self.folder / "watchkeeper.log").read_text()

    async def stop(self) -> int | None:
        """End it with SIGTERM and return its exit code."""
        if self.process is None or self.process.returncode is not None:
            return None
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(25):
            return await self.process.wait()

    # --- what tools do ------------------------------------------------------------------------------------

    def held(self, name: str) -> Block:
        """A reading call that waits until it is released."""
        return call("shop__hold", {"name": name, "directory": str(self.folder)})

    def release(self, *names: str) -> None:
        """Let held calls return; all of them without names."""
        for name in names or [path.stem for path in self.folder.glob("*.reached")]:
            (self.folder / f"{name}.release").touch()

    async def until_reached(self, *names: str) -> None:
        """Wait until the tool server holds these calls."""

        async def there() -> bool:
            return all((self.folder / f"{name}.reached").exists() for name in names)

        await eventually(there, timeout=25)

    # --- what the records say -----------------------------------------------------------------------------

    async def must_be_well(self) -> None:
        """What holds once a story is told: the laws of the records, and no card left live."""
        database = await self._records()
        try:

            async def well() -> bool:
                return not await broken(database, at_rest=True)

            with suppress(AssertionError):
                await eventually(well, timeout=5)
            assert await broken(database, at_rest=True) == []
        finally:
            await database.close()

    async def _records(self) -> Database:
        url = f"sqlite+aiosqlite:///{self.folder}/watchkeeper.db"
        return await Database.open(url, read_only=True)

    async def settles(self) -> list[dict[str, Json]]:
        """The settle records, newest last."""
        database = await self._records()
        try:
            return await reports.settle_records(database)
        finally:
            await database.close()

    async def until_settled(self, *reasons: str, timeout: float = 40) -> None:
        """Wait until exactly these reasons stand in the records, their cards released."""

        async def at_rest() -> bool:
            records = await self.settles()
            return [r["reason"] for r in records] == list(reasons) and all(
                r["card_released_at"] for r in records
            )

        try:
            await eventually(at_rest, timeout=timeout)
        except AssertionError:
            found = [record["reason"] for record in await self.settles()]
            raise AssertionError(f"wanted {reasons}, got {found}\n{self.log()}") from None

    # --- what people do without a browser -----------------------------------------------------------------

    async def post(self, path: str, **form: Any) -> aiohttp.ClientResponse:
        """Send a form as the page's script does."""
        headers = {"Origin": self.url, "HX-Request": "true"}
        async with self.http.post(
            f"{self.url}{path}", data=form, headers=headers, allow_redirects=False
        ) as answer:
            await answer.read()
            return answer

"""A room for stories: a Slack, a model and a tool server on the real wire, and Watchkeeper between them.

Watchkeeper runs in this process (fast) or as a process of its own (to be killed). Nothing of it is replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bot import compose
from bot.settings import Settings, load
from core.history import Json
from storage import reports
from storage.engine import Database
from storage.tables import inbox, outbox
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.slack import SlackServer
from tests.storage import fresh
from tests.stories import probes
from tests.stories.processes import Watchkeeper

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "tests" / "servers" / "mcp_probe.py"

FAST = """
[worker]
poll_s = 0.2
gather_s = {gather_s}
lease_s = {lease_s}
drain_timeout_s = {drain_timeout_s}
{worker}

[card]
min_interval_s = {card_interval_s}

[slack]
rate_factor = {rate_factor}

[reaper]
every_s = 0.3
card_grace_s = 0.3

[model]
retry_for_s = {retry_for_s}
idle_timeout_s = {idle_timeout_s}

{hurried}

[[mcp]]
name = "probe"
{probe}
timeout_s = 20
{more}
"""

INTERRUPTIBLE = ("probe__slow", "probe__hold", "probe__stubborn")
"""The tools that a steer may cut short in these stories, unless a story sets them otherwise."""


class Room:
    """The world of one story. Enter it, then `start` Watchkeeper."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.tool_log = folder / "tools.jsonl"
        self.slack = SlackServer(**changes.pop("slack", {}))
        self.model = AnthropicServer()
        self._socket_mode = changes.pop("socket_mode", True)
        self._own_probe = changes.pop("own_probe", False)
        self._on_postgres = changes.pop("database", "sqlite") == "postgres"
        self._database_url = ""
        self._probe_url = ""
        self._probe_began = 0
        self._changes = changes
        self._stack = AsyncExitStack()
        self._serving: asyncio.Task[int] | None = None
        self._records: Database | None = None
        self.process: Watchkeeper | None = None
        self.stderr = folder / "watchkeeper.log"

    async def __aenter__(self) -> Room:
        if self._on_postgres:
            await self._make_database()
        await self._stack.enter_async_context(self.slack)
        await self._stack.enter_async_context(self.model)
        if not self._own_probe:
            await self._share_probe()
        self._write_config()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.model.let_events_go()
        await self.stop()
        if self._records is not None:
            await self._records.close()
        await self._stack.aclose()

    def use_database(self, url: str) -> None:
        """Keep the records in this Postgres database, which the story sees to."""
        self._database_url = fresh.driven(url)

    async def _make_database(self) -> None:
        """A Postgres database of this story's own, on the server of this interpreter."""
        fresh.shared_postgres()  # here, since it dies with the thread that starts it
        self._database_url = await asyncio.to_thread(fresh.postgres_url)
        self._stack.push_async_callback(asyncio.to_thread, fresh.drop, self._database_url)

    async def _share_probe(self) -> None:
        """One tool server over HTTP serves all stories of this interpreter; this one reads on from here."""
        self._probe_url, self.tool_log = await asyncio.to_thread(probes.shared)
        self._probe_began = self.tool_log.stat().st_size

    def _write_config(self) -> None:
        probe = f"command = {json.dumps([sys.executable, str(PROBE), '--log', str(self.tool_log)])}"
        if self._probe_url:
            probe = f'url = "{self._probe_url}"'
        values = {
            "gather_s": 0.05,
            "lease_s": 3,
            "drain_timeout_s": 5,
            "retry_for_s": 5,
            "card_interval_s": 0.05,
            "idle_timeout_s": 5,
            "worker": "",
            "rate_factor": 100,
            "more": "",
            **self._changes,
        }
        hurried = [name for name in INTERRUPTIBLE if f'"{name}"' not in str(values["more"])]
        tables = "\n".join(f'[tools."{name}"]\ninterruptible = true' for name in hurried)
        (self.folder / "watchkeeper.toml").write_text(FAST.format(probe=probe, hurried=tables, **values))

    def environment(self) -> dict[str, str]:
        """The variables under which Watchkeeper runs here."""
        env = {
            "SLACK_BOT_TOKEN": self.slack.bot_token,
            "SLACK_API_URL": self.slack.api_url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": self.model.url,
            "DATABASE_URL": self.database_url,
            "WATCHKEEPER_CONFIG": str(self.folder / "watchkeeper.toml"),
            "WATCHKEEPER_PORT": str(self.port),
        }
        if self._socket_mode:
            env["SLACK_APP_TOKEN"] = self.slack.app_token
        else:
            env["SLACK_SIGNING_SECRET"] = self.slack.signing_secret
            self.slack.http_events_url = f"http://127.0.0.1:{self.port}/slack/events"
        return env

    @property
    def database_url(self) -> str:
        """The records, as Watchkeeper is told of them."""
        if self._database_url:
            return self._database_url.replace("+asyncpg", "")
        return f"sqlite:///{self.folder}/watchkeeper.db"

    @property
    def port(self) -> int:
        """Watchkeeper's port, the same after every restart."""
        if not hasattr(self, "_port"):
            self._port = free_port()
        return self._port

    @property
    def settings(self) -> Settings:
        """The settings as Watchkeeper reads them."""
        return load(self.environment(), self.folder)

    # --- Watchkeeper ------------------------------------------------------------

    async def start(self) -> Room:
        """Start Watchkeeper in this process and wait until Slack can reach it."""
        self._serving = asyncio.create_task(compose.serve(self.settings), name="watchkeeper")
        await self._until_reachable()
        return self

    async def start_process(self) -> Room:
        """Start Watchkeeper as a process of its own and wait until Slack can reach it."""
        env = {"PATH": os.environ["PATH"], **self.environment()}
        self.process = Watchkeeper.start(env, self.folder, self.stderr)
        await self._until_reachable()
        return self

    async def _until_reachable(self) -> None:
        if self._socket_mode:
            await self.slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=20)
        else:
            await eventually(self._answers, timeout=20)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def stop(self) -> int | None:
        """End Watchkeeper with SIGTERM and return its exit code."""
        if self._serving is not None:
            if not self._serving.done():
                os.kill(os.getpid(), signal.SIGTERM)
            code, self._serving = await self._serving, None
            return code
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                return await self.process.wait()
        return None

    async def kill(self) -> None:
        """End Watchkeeper's process with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()
        self.slack.cut_sockets()

    # --- looking ------------------------------------------------------------

    async def records(self) -> Database:
        """The database, open for reading beside Watchkeeper."""
        if self._records is None:
            url = self._database_url or f"sqlite+aiosqlite:///{self.folder}/watchkeeper.db"
            self._records = await Database.open(url, read_only=True)
        return self._records

    async def settles(self) -> list[dict[str, Json]]:
        """The settle records, newest last."""
        return await reports.settle_records(await self.records())

    async def reasons(self) -> list[str]:
        """The settle reasons, newest last."""
        return [str(record["reason"]) for record in await self.settles()]

    async def shown(self, conversation_id: str) -> dict[str, Json]:
        """What `watchkeeper show` prints."""
        found = await reports.conversation(await self.records(), conversation_id)
        assert found is not None
        return found

    async def until_settled(self, *reasons: str, timeout: float = 40) -> list[dict[str, Json]]:
        """Wait until exactly these reasons stand in the records, cards released and answers posted."""

        async def at_rest() -> bool:
            records = await self.settles()
            return [r["reason"] for r in records] == list(reasons) and all(
                r["card_released_at"] and (r["answer_posted_at"] or r["reason"] != "completed")
                for r in records
            )

        try:
            await eventually(at_rest, timeout=timeout)
        except AssertionError:
            raise AssertionError(f"wanted {reasons}, got {await self.settles()}") from None
        with contextlib.suppress(AssertionError):  # of stories in which Slack takes nothing more
            await eventually(self._has_said_everything, timeout=1)
        return await self.settles()

    async def _has_said_everything(self) -> bool:
        unshown = inbox.c.receipt.is_distinct_from(inbox.c.receipt_shown) & (inbox.c.fate != "replaced")

        async def left(tx: Any) -> int:
            posts = (await tx.execute(select(outbox.c.id).where(outbox.c.done_at.is_(None)))).all()
            return len(posts) + len((await tx.execute(select(inbox.c.seq).where(unshown))).all())

        return await (await self.records()).read(left) == 0

    def tool_events(self, event: str = "started") -> list[dict[str, Json]]:
        """What the tool server logged."""
        if not self.tool_log.exists():
            return []
        written = self.tool_log.read_bytes()[self._probe_began :]
        lines = [json.loads(line) for line in written.splitlines()]
        return [line for line in lines if line["event"] == event]

    def posts(self, event_type: str = "watchkeeper_note") -> list[dict[str, Json]]:
        """Our messages of a kind: their metadata payloads with the text."""
        return [
            {**message.metadata["event_payload"], "text": message.text}
            for message in self.slack.of_type(event_type)
            if message.metadata
        ]


async def eventually(holds: Callable[[], Awaitable[bool]], timeout: float = 30) -> None:
    """Wait until it holds; a failure says so."""
    try:
        async with asyncio.timeout(timeout):
            while not await holds():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError("it did not come true in time") from None


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

"""A fleet: real processes, one Slack that delivers each event to one of them, one model, one tool server."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from storage.engine import Database
from tests.fleet import servers
from tests.fleet.member import Member
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.proxy import HOST
from tests.servers.slack import SlackServer
from tests.stories import probes
from tests.stories.room import eventually, free_port

LEASE_S = 15.0
"""As in production: whoever goes on sooner does not wait for a lease."""

SHORT_LEASE_S = 3.0
"""For faults that only the end of a lease can mend."""

READY_WITHIN_S = 30.0
RETRIES = (0.1, 0.2, 0.5, 0.5, 1.0, 1.0, 2.0, 4.0, 4.0, 8.0)
"""Slack's own are minutes; sent again often enough that whatever is not acknowledged comes once more."""

CONFIG = """
[worker]
poll_s = 0.5
gather_s = 0.1
lease_s = {lease_s}
drain_timeout_s = 10

[card]
min_interval_s = 0.2

[slack]
rate_factor = 100

[reaper]
every_s = 0.5
card_grace_s = 1

[model]
retry_for_s = 30
idle_timeout_s = 10

[[mcp]]
name = "probe"
url = "{probe}"
timeout_s = 20
"""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is different from the start: clocks by member, no Redis, bells that cannot be trusted."""

    lease_s: float = LEASE_S
    clocks: Mapping[int, str] = field(default_factory=dict)
    redis: bool = True
    dropped: float = 0.0
    doubled: float = 0.0
    late_s: float = 0.0


class Fleet:
    """Enter it and three processes serve; `members` holds all that ever ran, in the order of their start."""

    def __init__(self, folder: Path, chance: random.Random, arrangement: Arrangement | None = None) -> None:
        self.folder = folder
        self.slack = SlackServer(retry_delays=RETRIES, ack_timeout=1.0)
        self.model = AnthropicServer()
        self.members: list[Member] = []
        self.database = ""
        self.arrangement = arrangement or Arrangement()
        self.began = time.time()
        self.clock_minus_monotonic = time.time() - time.monotonic()
        self._chance = chance
        self._probe_log = folder
        self._probe_began = 0
        self._probe_url = ""
        self._redis_database = "/0"
        self._records: Database | None = None

    # --- living -------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Fleet:
        await self.slack.up()
        await self.model.start()
        self._probe_url, self._probe_log = await asyncio.to_thread(probes.shared)
        self._probe_began = self._probe_log.stat().st_size
        self.database = await servers.fresh_database()
        self._redis_database = urlsplit((await servers.in_their_thread(servers.valkey)).fresh_url()).path
        config = CONFIG.format(lease_s=self.arrangement.lease_s, probe=self._probe_url)
        (self.folder / "watchkeeper.toml").write_text(config)
        return self

    async def start(self, count: int = 3) -> Fleet:
        """Start so many processes and wait until each is ready."""
        for _ in range(count):
            self.add()
        await asyncio.gather(*(self.until_ready(member) for member in self.members))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.model.let_events_go()
        for member in self.members:
            await member.end()
        if self._records is not None:
            await self._records.close()
        await self.model.close()
        await self.slack.__aexit__(None, None, None)
        await servers.postgres().drop(self.database)

    def add(self) -> Member:
        """Start one more process."""
        number = len(self.members)
        upstream = {
            "postgres": servers.postgres().port,
            "valkey": servers.valkey().port,
            "slack": self.slack.port,
            "model": int(urlsplit(self.model.url).port or 0),
        }
        member = Member.make(number, self.folder, free_port(), upstream, self._chance)
        given = self.arrangement
        member.bells.dropped, member.bells.doubled = given.dropped, given.doubled
        member.bells.late_s = given.late_s
        member.start(self._environment(member), self.folder, given.clocks.get(number, ""))
        self.members.append(member)
        return member

    def _environment(self, member: Member) -> dict[str, str]:
        environment = {
            "SLACK_BOT_TOKEN": self.slack.bot_token,
            "SLACK_APP_TOKEN": self.slack.app_token,
            "SLACK_API_URL": f"http://{HOST}:{member.slack.port}/api/",
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": f"http://{HOST}:{member.model.port}",
            "DATABASE_URL": servers.postgres().url(self.database, port=member.postgres.port),
            "WATCHKEEPER_CONFIG": str(self.folder / "watchkeeper.toml"),
            "WATCHKEEPER_PORT": str(member.port),
        }
        if self.arrangement.redis:
            environment["REDIS_URL"] = f"redis://{HOST}:{member.valkey.port}{self._redis_database}"
        return environment

    async def until_ready(self, member: Member) -> None:
        """Wait until `/readyz` says so."""

        async def ready() -> bool:
            assert member.runs, f"{member} ended at its start:\n{member.log.read_text()[-2000:]}"
            return await is_ready(member)

        await eventually(ready, timeout=READY_WITHIN_S)

    # --- looking ------------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Member]:
        """Those whose processes live."""
        return [member for member in self.members if member.runs]

    def member_at(self, host: str) -> Member | None:
        """Whose way to Slack or the model this is."""
        return next((member for member in self.members if host in member.hosts), None)

    async def records(self) -> Database:
        """The database, by a way that nobody disturbs."""
        if self._records is None:
            url = servers.postgres().url(self.database, scheme="postgresql+asyncpg")
            self._records = await Database.open(url, read_only=True)
        return self._records

    def tool_events(self) -> list[dict[str, object]]:
        """What the tool server logged for this fleet."""
        written = self._probe_log.read_bytes()[self._probe_began :]
        return [json.loads(line) for line in written.splitlines()]

    def wall(self, monotonic: float) -> float:
        """A monotonic time of the test servers as the database would have it."""
        return monotonic + self.clock_minus_monotonic


async def is_ready(member: Member) -> bool:
    """Whether it says that it is."""
    address = f"http://{HOST}:{member.port}/readyz"
    try:
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False

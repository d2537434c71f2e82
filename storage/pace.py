"""The rate budget that processes share: Redis counts, by its own clock, what all of them call.

It is asked once for each call, and answers at once or not at all: whoever gets no answer in time decides
alone, and until Redis answers again nobody waits for it. Keys expire by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import structlog
from redis.asyncio import Redis

from storage.redis_address import ANSWER_WITHIN_S, NAMESPACE, NOT_USABLE, RedisAddress

log = structlog.get_logger()

T = TypeVar("T")

PATIENCE_S = 0.25
ONE_MORE_LOOK_S = 0.01
"""When this process itself was busy for so long, it has not even asked, or nobody has looked."""

COME_BACK_EVERY_S = 1.0
MICROSECONDS = 1_000_000

TAKE = """
-- KEYS: what was taken, newest first; the rest; then one for each spacing.
-- ARGV: most and microseconds of the window; then interval in microseconds and burst of each spacing.
-- Returns the microseconds to wait: for window and rest, then for each spacing. All zero: it is taken.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local most, window = tonumber(ARGV[1]), tonumber(ARGV[2])

-- Times from a clock that was ahead of this one would never pass.
local newest = redis.call('LINDEX', KEYS[1], 0)
if newest and tonumber(newest) > now + 1000000 then redis.call('DEL', KEYS[1]) end

local before = redis.call('LINDEX', KEYS[1], most - 1)
local wait = before and tonumber(before) + window - now or 0
local waits = {math.max(0, wait, redis.call('PTTL', KEYS[2]) * 1000)}
local free = waits[1] == 0
local nexts = {}
for i = 3, #KEYS do
  local interval, burst = tonumber(ARGV[2 * i - 3]), tonumber(ARGV[2 * i - 2])
  local next = tonumber(redis.call('GET', KEYS[i]) or 0)
  if next > now + interval * burst + 1000000 then next = 0 end
  local early = math.max(0, next - interval * (burst - 1) - now)
  waits[#waits + 1] = early
  nexts[i] = math.max(next, now) + interval
  free = free and early == 0
end
if not free then return waits end

redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
while tonumber(redis.call('LINDEX', KEYS[1], -1)) <= now - window do redis.call('RPOP', KEYS[1]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
for i = 3, #KEYS do
  redis.call('SET', KEYS[i], string.format('%.0f', nexts[i]), 'PX', math.ceil((nexts[i] - now) / 1000))
end
return waits
"""

REST = """
-- KEYS: the rest. ARGV: its milliseconds. The longest counts.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
"""

Spacing = tuple[str, float, int]
"""Under this name at most so many at once, and then one every so many seconds: (name, interval_s, burst)."""


class RedisPace:
    """The budget of one workspace, shared by all who name it alike. Close it when done."""

    def __init__(self, address: RedisAddress, workspace: str) -> None:
        self._address = address
        self._prefix = f"{NAMESPACE}:pace:{{{workspace}}}"  # in braces: all keys of a script in one place
        self._client: Redis | None = None
        self._coming_back: asyncio.Task[None] | None = None
        self._closed = False
        self._owned: set[asyncio.Task[Any]] = set()

    @property
    def connected(self) -> bool:
        """Whether Redis is asked at present."""
        return self._client is not None

    async def take(
        self, lane: str, most: int, window_s: float, spacings: Sequence[Spacing] = ()
    ) -> list[float] | None:
        """Take one call's share, or nothing of it.

        Returns the seconds to wait, for the lane and for each spacing: all zero means that it is taken. None:
        nobody answers, decide alone.
        """
        keys = [f"{lane}:taken", f"{lane}:rest", *(f"{lane}:{name}" for name, _, _ in spacings)]
        arguments = [most, int(window_s * MICROSECONDS)]
        for _, interval_s, burst in spacings:
            arguments += [int(interval_s * MICROSECONDS), burst]
        waits = await self._asked(TAKE, keys, arguments)
        return None if waits is None else [wait / MICROSECONDS for wait in waits]

    def rest(self, lane: str, seconds: float) -> None:
        """Let nobody call for so long. Does not wait."""
        self._own(self._asked(REST, [f"{lane}:rest"], [max(1, int(seconds * 1000))]))

    async def close(self) -> None:
        """End what is under way."""
        self._closed = True
        if self._coming_back is not None:
            self._coming_back.cancel()
        if self._client is not None:
            client, self._client = self._client, None
            self._own(client.aclose())  # whoever still waits for an answer fails by this
        await asyncio.gather(*self._owned, return_exceptions=True)

    async def _asked(self, script: str, keys: list[str], arguments: list[int]) -> Any:
        """The script's answer; None when there is none in time."""
        client = self._client
        if client is None:
            self._come_back()
            return None
        named = [f"{self._prefix}:{key}" for key in keys]
        asking = self._own(_answer(client, script, named, arguments))
        for patience_s in (PATIENCE_S, ONE_MORE_LOOK_S):
            await asyncio.wait({asking}, timeout=patience_s)
        if not asking.done():
            self._give_up(client, TimeoutError())
            return None
        error = asking.exception()
        if isinstance(error, NOT_USABLE):
            self._give_up(client, error)
            return None
        return asking.result() or []

    def _give_up(self, client: Redis, error: Exception) -> None:
        """Use none of its connections again: an answer that comes late would be taken for another one's."""
        if self._client is client:
            log.warning("shared_pace_lost", reason=self._address.why(error))
            self._client = None
            self._own(client.aclose())
            self._come_back()

    def _come_back(self) -> None:
        if not self._closed and (self._coming_back is None or self._coming_back.done()):
            self._coming_back = self._own(self._until_connected())

    async def _until_connected(self) -> None:
        while self._client is None:
            client = self._address.client()
            try:
                await _look_up(client)
                self._client = client
            except NOT_USABLE:
                await asyncio.sleep(COME_BACK_EVERY_S)
            finally:
                if self._client is not client:
                    self._own(client.aclose())
        log.info("shared_pace_found", address=str(self._address))

    def _own(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run it to its end, whoever stops waiting for it."""
        task = asyncio.create_task(work)
        self._owned.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._owned.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it


async def _answer(client: Redis, script: str, keys: list[str], arguments: list[int]) -> Any:
    async with asyncio.timeout(ANSWER_WITHIN_S):
        return await client.register_script(script)(keys=keys, args=arguments)


async def _look_up(client: Redis) -> None:
    """Connect and bring the scripts; then it must answer as quickly as it is asked to later."""
    async with asyncio.timeout(ANSWER_WITHIN_S):
        for script in (TAKE, REST):
            await client.script_load(script)
    async with asyncio.timeout(PATIENCE_S):
        await client.ping()

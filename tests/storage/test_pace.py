"""The budget that processes share, on a real server: by its clock, whole or not at all, never waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import structlog
from redis.asyncio import Redis

from storage.pace import PATIENCE_S, RedisPace
from storage.redis_address import RedisAddress
from tests.servers import valkey
from tests.servers.valkey import ValkeyServer


@asynccontextmanager
async def pace(url: str, workspace: str = "W", *, connected: bool = True) -> AsyncIterator[RedisPace]:
    one = RedisPace(RedisAddress(url), workspace)
    try:
        if connected:
            await connect(one)
        yield one
    finally:
        await one.close()


async def connect(one: RedisPace) -> None:
    async with asyncio.timeout(10):
        while not one.connected:
            await one.take("begin", 1_000, 1.0)
            await asyncio.sleep(0.01)


@pytest.fixture
async def server() -> AsyncIterator[ValkeyServer]:
    """One of this test's own, to be hurt."""
    async with ValkeyServer() as one:
        yield one


async def test_within_the_window_no_more_is_taken_than_there_is_whoever_asks() -> None:
    url = valkey.shared().fresh_url()
    async with pace(url) as one, pace(url) as other:
        taken = [await who.take("post", 4, 60.0) for who in (one, other, one, other)]
        assert taken == [[0.0]] * 4
        for who in (one, other):
            waits = await who.take("post", 4, 60.0)
            assert waits is not None
            assert 59 < waits[0] <= 60


async def test_what_was_taken_is_free_again_after_the_window() -> None:
    async with pace(valkey.shared().fresh_url()) as one:
        assert await one.take("post", 1, 0.2) == [0.0]
        waits = await one.take("post", 1, 0.2)
        assert waits is not None
        await asyncio.sleep(waits[0] + 0.001)
        assert await one.take("post", 1, 0.2) == [0.0]


async def test_whoever_may_take_more_still_can() -> None:
    """The urgent ask with a larger number for the same lane."""
    async with pace(valkey.shared().fresh_url()) as one:
        for _ in range(3):
            await one.take("post", 3, 60.0)
        assert await one.take("post", 3, 60.0) != [0.0]
        assert await one.take("post", 4, 60.0) == [0.0]
        assert await one.take("post", 4, 60.0) != [0.0]


async def test_lanes_and_workspaces_do_not_share() -> None:
    url = valkey.shared().fresh_url()
    async with pace(url) as one, pace(url, "V") as elsewhere:
        assert await one.take("post", 1, 60.0) == [0.0]
        assert await one.take("update", 1, 60.0) == [0.0]
        assert await elsewhere.take("post", 1, 60.0) == [0.0]


async def test_a_spacing_lets_a_burst_go_and_then_one_at_a_time() -> None:
    spacing = ("C1", 0.2, 2)
    async with pace(valkey.shared().fresh_url()) as one:
        assert [await one.take("post", 99, 60.0, [spacing]) for _ in range(2)] == [[0.0, 0.0]] * 2
        waits = await one.take("post", 99, 60.0, [spacing])
        assert waits is not None
        assert waits[0] == 0
        assert 0 < waits[1] <= 0.2
        assert await one.take("post", 99, 60.0, [("C2", 0.2, 2)]) == [0.0, 0.0]
        await asyncio.sleep(waits[1] + 0.001)
        assert await one.take("post", 99, 60.0, [spacing]) == [0.0, 0.0]


async def test_whoever_must_wait_has_taken_nothing() -> None:
    async with pace(valkey.shared().fresh_url()) as one:
        await one.take("post", 2, 60.0, [("C1", 60.0, 1)])
        for _ in range(5):
            assert await one.take("post", 2, 60.0, [("C1", 60.0, 1)]) != [0.0, 0.0]
        assert await one.take("post", 2, 60.0, [("C2", 60.0, 1)]) == [0.0, 0.0], "the window was used up"
        await one.take("post", 2, 60.0, [("C3", 60.0, 1)])
        assert await one.take("post", 3, 60.0, [("C3", 60.0, 1)]) == [0.0, 0.0], "the spacing was used up"


async def test_a_rest_is_kept_by_everybody_and_the_longest_counts() -> None:
    url = valkey.shared().fresh_url()
    async with pace(url) as one, pace(url) as other:
        one.rest("post", 30.0)
        one.rest("post", 0.01)
        await asyncio.sleep(0.1)
        waits = await other.take("post", 99, 60.0)
        assert waits is not None
        assert 29 < waits[0] <= 30
        assert await other.take("update", 99, 60.0) == [0.0]


async def test_a_rest_ends() -> None:
    async with pace(valkey.shared().fresh_url()) as one:
        one.rest("post", 0.1)
        await asyncio.sleep(0.15)
        assert await one.take("post", 99, 60.0) == [0.0]


async def test_nothing_is_left_in_redis_for_ever() -> None:
    url = valkey.shared().fresh_url()
    async with pace(url) as one:
        await one.take("post", 99, 30.0, [("C1", 30.0, 2)])
        one.rest("post", 30.0)
        async with Redis.from_url(url, decode_responses=True) as client:
            async with asyncio.timeout(5):
                while len(keys := [str(key) for key in await client.keys("*:post:*")]) < 3:
                    await asyncio.sleep(0.01)
            assert all(key.startswith("watchkeeper:pace:{W}:") for key in keys)
            assert all([0 < await client.pttl(key) < 120_000 for key in keys])


async def test_times_from_a_clock_that_was_ahead_hold_nobody_up() -> None:
    """After a failover another host's clock counts."""
    url = valkey.shared().fresh_url()
    async with pace(url) as one:
        client = RedisAddress(url).client()
        ahead = int((time.time() + 3600) * 1_000_000)
        await client.lpush("watchkeeper:pace:{W}:post:taken", *[ahead] * 9)
        await client.set("watchkeeper:pace:{W}:post:C1", ahead)
        await client.aclose()
        assert await one.take("post", 9, 60.0, [("C1", 1.0, 2)]) == [0.0, 0.0]


async def test_one_call_costs_one_round_trip() -> None:
    url = valkey.shared().fresh_url()
    async with pace(url) as one:
        before = await calls()
        for number in range(10):
            await one.take("post", 99, 60.0, [(f"C{number}", 1.0, 2)])
        after = await calls()
    assert {
        name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)
    } == {"evalsha": 10}


async def calls() -> dict[str, int]:
    """How often the server was sent each command that a pace might send."""
    client = RedisAddress(valkey.shared().url).client()
    stats = await client.info("commandstats")
    await client.aclose()
    names = ("evalsha", "eval", "ping", "script|load", "script|exists", "select", "auth")
    return {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in names if name != "select"}


async def test_scripts_that_the_server_has_forgotten_are_brought_again() -> None:
    async with pace(valkey.shared().fresh_url()) as one:
        await valkey.shared().command("SCRIPT", "FLUSH")
        assert await one.take("post", 1, 60.0) == [0.0]
        one.rest("post", 60.0)
        await asyncio.sleep(0.1)
        assert await one.take("post", 9, 60.0) != [0.0]


# --- when Redis is away -------------------------------------------------------------------------------


async def test_while_redis_is_not_there_nobody_waits() -> None:
    async with pace("redis://127.0.0.1:1/0", connected=False) as one:
        began = time.monotonic()
        for _ in range(100):
            assert await one.take("post", 1, 60.0) is None
            one.rest("post", 60.0)
        assert time.monotonic() - began < 0.2


async def test_a_server_that_is_killed_costs_nobody_time_and_is_found_again(server: ValkeyServer) -> None:
    async with pace(server.url) as one:
        server.kill()
        began = time.monotonic()
        for _ in range(100):
            assert await one.take("post", 1, 60.0) is None
        assert time.monotonic() - began < PATIENCE_S + 1
        await server.start()
        await connect(one)
        assert await one.take("post", 1, 60.0) == [0.0]


async def test_a_server_that_stops_answering_is_waited_for_once_and_shortly(server: ValkeyServer) -> None:
    async with pace(server.url) as one:
        server.pause()
        began = time.monotonic()
        for _ in range(100):
            assert await one.take("post", 1, 60.0) is None
        assert PATIENCE_S <= time.monotonic() - began < PATIENCE_S + 1
        server.resume()
        await connect(one)
        assert await one.take("post", 5, 60.0) == [0.0]


async def test_whoever_stops_waiting_for_an_answer_spoils_nobody_elses(server: ValkeyServer) -> None:
    async with pace(server.url) as one:
        asking = [asyncio.create_task(one.take(f"lane {number}", 1, 60.0)) for number in range(20)]
        await asyncio.sleep(0)
        for task in asking[::2]:
            task.cancel()
        assert await asyncio.gather(*asking[1::2]) == [[0.0]] * 10
        await asyncio.gather(*asking, return_exceptions=True)
        for number in range(20):
            waits = await one.take(f"lane {number}", 1, 60.0)
            assert waits is not None
            assert 58 < waits[0] <= 60


async def test_a_server_that_is_emptied_begins_anew(server: ValkeyServer) -> None:
    async with pace(server.url) as one:
        await one.take("post", 1, 60.0)
        await server.flushall()
        assert await one.take("post", 1, 60.0) == [0.0]


async def test_it_can_be_closed_while_the_server_does_not_answer(server: ValkeyServer) -> None:
    async with pace(server.url) as one:
        server.pause()
        asking = asyncio.create_task(one.take("post", 1, 60.0))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await one.close()
        assert time.monotonic() - began < 1
        assert await asking is None


async def test_a_lost_server_is_logged_once_and_without_the_password() -> None:
    async with ValkeyServer(password="hunter2hunter2") as guarded, pace(guarded.url) as one:
        with structlog.testing.capture_logs() as logs:
            guarded.kill()
            for _ in range(5):
                await one.take("post", 1, 60.0)
        lost = [entry for entry in logs if entry["event"] == "shared_pace_lost"]
        assert len(lost) == 1
        assert f"127.0.0.1:{guarded.port}" in lost[0]["reason"]
        assert "hunter2hunter2" not in str(logs)


async def test_a_process_that_was_busy_itself_does_not_take_the_server_for_slow() -> None:
    async with pace(valkey.shared().fresh_url()) as one:
        asking = asyncio.create_task(one.take("post", 1, 60.0))
        await asyncio.sleep(0)
        time.sleep(PATIENCE_S * 2)
        assert await asking == [0.0]
        assert one.connected

"""Rings over a real server: whatever becomes of it, who rings never waits, and all look once after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest

from storage.redis_address import RedisAddress
from storage.wake import LONGEST_PAUSE_S, MOST_WAITING, SILENT_FOR_S, Wake, prove
from tests.servers import valkey
from tests.servers.proxy import Part, Proxy, Wire
from tests.servers.valkey import ValkeyServer

NOTICED_WITHIN_S = SILENT_FOR_S + LONGEST_PAUSE_S + 3


class Listener:
    """What one process has heard, and how often it was connected."""

    def __init__(self, url: str) -> None:
        self.wake = Wake(RedisAddress(url))
        self.heard: list[str] = []
        self.connected = 0

    async def run(self) -> None:
        await self.wake.run(lambda kind, name: self.heard.append(f"{kind} {name}"), self._count)

    def _count(self) -> None:
        self.connected += 1


@asynccontextmanager
async def listener(url: str, *, connected: bool = True) -> AsyncIterator[Listener]:
    one = Listener(url)
    task = asyncio.create_task(one.run())
    try:
        if connected:
            await until(lambda: one.connected == 1)
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.fixture
async def server() -> AsyncIterator[ValkeyServer]:
    """One of this test's own, to be hurt."""
    async with ValkeyServer() as one:
        yield one


async def test_others_hear_what_is_rung_and_whoever_rang_does_not() -> None:
    url = valkey.shared().fresh_url()
    async with listener(url) as here, listener(url) as there:
        here.wake.ring("topic", "work")
        here.wake.ring("turn", "a name with spaces")
        await until(lambda: len(there.heard) == 2)
        there.wake.ring("topic", "done")
        await until(lambda: here.heard == ["topic done"])
        assert there.heard == ["topic work", "turn a name with spaces"]


async def test_rings_that_wait_are_not_doubled_and_not_piled_up() -> None:
    url = valkey.shared().fresh_url()
    async with listener(url) as there, listener(url) as here:
        for number in range(MOST_WAITING + 1000):
            here.wake.ring("topic", "work")
            here.wake.ring("turn", str(number))
        await until(lambda: len(there.heard) == MOST_WAITING)
        here.wake.ring("topic", "mark")
        await until(lambda: there.heard[-1] == "topic mark")
        assert there.heard.count("topic work") == 1


async def test_what_was_rung_before_the_connection_stood_is_sent_then() -> None:
    url = valkey.shared().fresh_url()
    early = Listener(url)
    early.wake.ring("topic", "work")
    async with listener(url) as there:
        task = asyncio.create_task(early.run())
        await until(lambda: there.heard == ["topic work"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_server_that_is_killed_and_started_again_is_found_again(server: ValkeyServer) -> None:
    async with listener(server.url) as here, listener(server.url) as there:
        server.kill()
        await until(lambda: bool(here.wake.reason and there.wake.reason))
        address = f"127.0.0.1:{server.port}"
        assert here.wake.reason.startswith(f"Redis: cannot be reached at {address} (")
        await server.start()
        await until(lambda: here.connected == there.connected == 2)
        here.wake.ring("topic", "work")
        await until(lambda: there.heard == ["topic work"])
        await asyncio.sleep(0.2)
        assert (here.connected, there.connected) == (2, 2)
        assert (here.wake.reason, there.wake.reason) == ("", "")


async def test_whose_listening_is_ended_listens_again_and_looks_once(server: ValkeyServer) -> None:
    async with listener(server.url) as here, listener(server.url) as there:
        assert await server.command("CLIENT", "KILL", "TYPE", "pubsub") == 2
        await until(lambda: here.connected == there.connected == 2)
        await asyncio.sleep(0.2)
        assert (here.connected, there.connected) == (2, 2)
        here.wake.ring("topic", "work")
        await until(lambda: there.heard == ["topic work"])


async def test_whose_speaking_is_ended_speaks_again(server: ValkeyServer) -> None:
    async with listener(server.url) as here, listener(server.url) as there:
        await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        here.wake.ring("topic", "work")
        await until(lambda: there.heard == ["topic work"])


async def test_a_server_that_is_emptied_changes_nothing(server: ValkeyServer) -> None:
    async with listener(server.url) as here, listener(server.url) as there:
        await server.flushall()
        here.wake.ring("topic", "work")
        await until(lambda: there.heard == ["topic work"])
        assert (here.connected, there.connected) == (1, 1)


@pytest.mark.slow
async def test_a_server_that_stops_answering_is_noticed_and_delays_nobody(server: ValkeyServer) -> None:
    async with listener(server.url) as here, listener(server.url) as there:
        server.pause()
        began = time.monotonic()
        for number in range(1000):
            here.wake.ring("turn", str(number))
        assert time.monotonic() - began < 0.1
        await until(lambda: bool(here.wake.reason and there.wake.reason), NOTICED_WITHIN_S)
        assert "no answer in time" in here.wake.reason
        server.resume()
        await until(lambda: here.connected == there.connected == 2)
        here.wake.ring("topic", "work")
        await until(lambda: "topic work" in there.heard)


class Fading(Wire):
    """Lets answers through, until those of connections with this purpose are lost."""

    fades: bytes | None = None

    def __init__(self) -> None:
        self._listens = False

    def to_server(self, chunk: bytes) -> Iterable[Part]:
        self._listens |= b"SUBSCRIBE" in chunk
        return (chunk,)

    def to_client(self, chunk: bytes) -> Iterable[Part]:
        return () if self.fades == (b"listening" if self._listens else b"speaking") else (chunk,)


@pytest.mark.slow
@pytest.mark.parametrize("purpose", [b"listening", b"speaking"])
async def test_a_single_connection_that_fades_is_noticed_though_nobody_rings(purpose: bytes) -> None:
    class Network(Fading):
        """That of this test."""

    proxy = Proxy(valkey.shared().port, Network).start()
    number = RedisAddress(valkey.shared().fresh_url()).database
    try:
        async with listener(f"redis://127.0.0.1:{proxy.port}/{number}") as one:
            Network.fades = purpose
            await until(lambda: "no answer in time" in one.wake.reason, NOTICED_WITHIN_S)
            Network.fades = None
            await until(lambda: one.connected == 2)
    finally:
        proxy.close()


@pytest.mark.slow
async def test_a_quiet_connection_is_kept(server: ValkeyServer) -> None:
    async with listener(server.url) as here:
        await asyncio.sleep(SILENT_FOR_S + 1)
        assert here.connected == 1
        assert here.wake.reason == ""


async def test_a_doubled_message_is_heard_twice_and_breaks_nothing() -> None:
    url = valkey.shared().fresh_url()
    async with listener(url) as one:
        client = RedisAddress(url).client()
        for _ in range(2):
            await client.publish(f"watchkeeper:{RedisAddress(url).database}:bells", "other topic work")
        await client.aclose()
        await until(lambda: one.heard == ["topic work"] * 2)


async def test_before_it_is_connected_it_says_so() -> None:
    assert Wake(RedisAddress("redis://127.0.0.1:1/0")).reason == "Redis: not connected yet"


async def test_when_it_ends_its_connections_end() -> None:
    url = valkey.shared().fresh_url()
    channel = f"watchkeeper:{RedisAddress(url).database}:bells"
    async with listener(url):
        assert await valkey.shared().command("PUBSUB", "NUMSUB", channel) == [channel.encode(), 1]
    await asyncio.sleep(0.05)
    assert await valkey.shared().command("PUBSUB", "NUMSUB", channel) == [channel.encode(), 0]


# --- proving that it works ----------------------------------------------------------------------------


async def test_a_server_that_works_is_proved_to_work() -> None:
    await prove(RedisAddress(valkey.shared().fresh_url()))


@pytest.mark.slow
async def test_a_server_that_does_not_answer_is_not_waited_for_long(server: ValkeyServer) -> None:
    server.pause()
    with pytest.raises(TimeoutError):
        await prove(RedisAddress(server.url))


async def test_a_user_who_may_not_publish_is_found_out(server: ValkeyServer) -> None:
    await server.command("ACL", "SETUSER", "reader", "on", ">pass", "+@all", "-publish", "~*", "allchannels")
    address = RedisAddress(server.url.replace("redis://", "redis://reader:pass@"))
    with pytest.raises(Exception, match="permissions") as caught:
        await prove(address)
    assert address.why(caught.value).endswith("give this user the rights to it")

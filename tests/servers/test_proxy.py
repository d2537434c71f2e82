"""The proxy fails as it is told, and only so."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import asyncpg
import pytest
from redis.asyncio import Redis

from tests.servers import valkey
from tests.servers.postgres_wire import CommitFaults, Lost, PostgresWire
from tests.servers.proxy import Cut, Direction, Proxy
from tests.servers.redis_wire import BellFaults, RedisWire
from tests.storage.fresh import shared_postgres


@asynccontextmanager
async def echo() -> AsyncIterator[Proxy]:
    """A proxy in front of a server that says back what it hears."""

    async def say_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while heard := await reader.read(1000):
            writer.write(heard)
        writer.close()

    server = await asyncio.start_server(say_back, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1]).start()
    try:
        yield proxy
    finally:
        proxy.close()
        server.close()


class Client:
    """One connection to a proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, proxy: Proxy) -> Client:
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def hears(self, within_s: float = 3.0) -> str:
        """What comes next; nothing at the end, `silence` when it takes too long."""
        try:
            async with asyncio.timeout(within_s):
                return (await self._reader.read(1000)).decode()
        except TimeoutError:
            return "silence"

    async def asks(self, words: str, within_s: float = 3.0) -> str:
        """Say something and listen."""
        self._writer.write(words.encode())
        return await self.hears(within_s)

    def close(self) -> None:
        """Hang up."""
        self._writer.transport.abort()


async def test_it_passes_everything_on_in_both_directions() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        assert await client.asks("hello") == "hello"
        client.close()


async def test_a_black_hole_answers_nothing_and_lets_what_it_held_go_once_it_passes_again() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        proxy.black_hole()
        assert await client.asks("hello", within_s=0.2) == "silence"
        late = await Client.to(proxy)
        assert await late.asks("late", within_s=0.2) == "silence"
        proxy.pass_on()
        assert await client.hears() == "hello"
        assert await late.hears() == "late"
        client.close()
        late.close()


async def test_half_open_loses_one_direction_only() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        proxy.hold(Direction.TO_CLIENT)
        assert await client.asks("hello", within_s=0.2) == "silence"
        proxy.pass_on()
        assert await client.hears() == "hello"
        client.close()


async def test_a_reset_is_an_error_at_the_client_and_the_next_connection_is_taken() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        await client.asks("hello")
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await client.hears()
        again = await Client.to(proxy)
        assert await again.asks("again") == "again"
        again.close()


async def test_refusing_ends_what_stands_and_takes_nothing_until_it_passes_again() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        await client.asks("hello")
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            await client.hears()
        with pytest.raises(ConnectionRefusedError):
            await Client.to(proxy)
        proxy.pass_on()
        again = await Client.to(proxy)
        assert await again.asks("again") == "again"
        again.close()


async def test_a_slow_one_is_late() -> None:
    async with echo() as proxy:
        client = await Client.to(proxy)
        proxy.slow(0.1)
        began = time.monotonic()
        assert await client.asks("hello") == "hello"
        assert time.monotonic() - began >= 0.2  # there and back
        client.close()


async def test_it_obeys_while_the_loop_of_the_test_is_busy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1]).start()
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=3) as client:
            server, _ = listener.accept()  # nothing awaits here: the loop stands
            with server:
                client.sendall(b"hello")
                assert server.recv(100) == b"hello"
                proxy.black_hole()
                client.sendall(b"held")
                proxy.pass_on()
                assert server.recv(100) == b"held"
        proxy.close()


# --- Postgres -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    server = shared_postgres()
    asyncio.run(server.create("proxied"))
    asyncio.run(server.execute("create table notes (words text)", "proxied"))
    yield "proxied"
    asyncio.run(server.drop("proxied"))


@asynccontextmanager
async def connected(database: str) -> AsyncIterator[tuple[asyncpg.Connection, CommitFaults]]:
    """A connection through a proxy that knows Postgres' wire."""
    faults = CommitFaults()
    proxy = Proxy(shared_postgres().port, partial(PostgresWire, faults)).start()
    connection = await asyncpg.connect(shared_postgres().url(database, port=proxy.port))
    try:
        yield connection, faults
    finally:
        connection.terminate()
        proxy.close()


async def stored(database: str) -> list[str]:
    """What the table holds, by a connection that nobody disturbs."""
    connection = await asyncpg.connect(shared_postgres().url(database))
    try:
        return [row["words"] for row in await connection.fetch("select words from notes")]
    finally:
        await connection.close()


async def note(connection: asyncpg.Connection, words: str) -> None:
    """One transaction."""
    async with connection.transaction():
        await connection.execute("insert into notes values ($1)", words)


@pytest.mark.slow
async def test_transactions_pass_and_are_counted(database: str) -> None:
    async with connected(database) as (connection, faults):
        await note(connection, "passed")
        await note(connection, "x" * 300_000)
        assert await connection.fetchval("select sum(length(words)) from notes") > 300_000
        assert faults.seen == 2
    assert "passed" in await stored(database)


@pytest.mark.slow
@pytest.mark.parametrize("lost, done", [(Lost.BEFORE, False), (Lost.AFTER, True)])
async def test_a_connection_lost_around_the_commit_leaves_it_done_or_not(
    database: str, lost: Lost, done: bool
) -> None:
    async with connected(database) as (connection, faults):
        faults.plan(lost, words="insert into notes")
        with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
            await note(connection, lost.name)
        assert len(faults.met) == 1
    assert (lost.name in await stored(database)) is done


@pytest.mark.slow
async def test_only_the_transaction_that_is_meant_is_met(database: str) -> None:
    async with connected(database) as (connection, faults):
        faults.plan(Lost.AFTER, words="delete from notes")
        await note(connection, "left alone")
        await note(connection, "left alone too")  # by the statement that was prepared before
        assert faults.left == 1
        with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
            async with connection.transaction():
                await connection.execute("delete from notes")
    assert await stored(database) == []


@pytest.mark.slow
async def test_the_answer_to_a_commit_may_be_swallowed_without_an_end(database: str) -> None:
    async with connected(database) as (connection, faults):
        faults.plan(Lost.AFTER, how=Cut.SILENCE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await note(connection, "swallowed")
    assert "swallowed" in await stored(database)


# --- Redis --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def subscribed(faults: BellFaults) -> AsyncIterator[tuple[Redis, asyncio.Queue[str]]]:
    """Somebody who publishes directly, and what a subscriber hears through the proxy."""
    server = valkey.shared()
    proxy = Proxy(server.port, partial(RedisWire, faults)).start()
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with (
        Redis.from_url(server.url) as speaker,
        Redis.from_url(server.url.replace(str(server.port), str(proxy.port))) as hearer,
        hearer.pubsub() as subscription,
    ):
        await subscription.subscribe("bells")

        async def listen() -> None:
            async for message in subscription.listen():
                if message["type"] == "message":
                    heard.put_nowait(message["data"].decode())

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        try:
            yield speaker, heard
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    proxy.close()


async def hear_all(heard: asyncio.Queue[str], quiet_s: float = 0.3) -> list[str]:
    """Everything until it is quiet."""
    found = []
    while True:
        try:
            async with asyncio.timeout(quiet_s):
                found.append(await heard.get())
        except TimeoutError:
            return found


@pytest.mark.slow
async def test_bells_are_dropped_doubled_or_late_as_told() -> None:
    faults = BellFaults(random.Random(1))
    async with subscribed(faults) as (speaker, heard):
        await speaker.publish("bells", "whole")
        assert await hear_all(heard) == ["whole"]
        faults.doubled = 1.0
        await speaker.publish("bells", "doubled")
        assert await hear_all(heard) == ["doubled", "doubled"]
        faults.doubled, faults.dropped = 0.0, 1.0
        await speaker.publish("bells", "dropped")
        assert await hear_all(heard) == []
        faults.dropped, faults.late_s = 0.0, 0.2
        await speaker.publish("bells", "late")
        assert await hear_all(heard) == ["late"]
        assert (faults.passed, faults.lost) == (3, 1)

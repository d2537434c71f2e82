"""Why Redis cannot be used: one line that names the mend, and never the password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage.redis_address import NOT_USABLE, RedisAddress
from storage.wake import prove
from tests.servers import valkey
from tests.servers.valkey import ValkeyServer

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def guarded() -> object:
    server = ValkeyServer(password=SECRET).launch()
    yield server
    server.kill()


async def why(url: str) -> str:
    address = RedisAddress(url)
    with pytest.raises(NOT_USABLE) as caught:
        await prove(address)
    said = address.why(caught.value)
    assert SECRET not in said
    assert "\n" not in said
    return said


async def test_a_wrong_password_is_named(guarded: ValkeyServer) -> None:
    where = f"127.0.0.1:{guarded.port}"
    mend = f"{where} rejects the password; set it in REDIS_URL (redis://:PASSWORD@{where}/0)"
    assert await why(f"redis://:{SECRET}2@{where}/0") == mend
    assert await why(f"redis://{where}/0") == mend


async def test_a_right_password_lets_in(guarded: ValkeyServer) -> None:
    await prove(RedisAddress(guarded.url))


async def test_a_password_where_none_is_set_is_named() -> None:
    where = f"127.0.0.1:{valkey.shared().port}"
    said = await why(f"redis://:{SECRET}@{where}/0")
    assert said == f"{where} takes no password; leave it out of REDIS_URL"


async def test_a_database_that_it_does_not_have_is_named() -> None:
    where = f"127.0.0.1:{valkey.shared().port}"
    assert (
        await why(f"redis://{where}/999999") == f"{where} refuses (DB index is out of range); check REDIS_URL"
    )


async def test_nobody_at_the_address_is_named() -> None:
    assert await why(f"redis://:{SECRET}@127.0.0.1:1/0") == (
        "cannot be reached at 127.0.0.1:1 (Connection refused); check that it runs, and REDIS_URL"
    )


async def test_a_name_that_nobody_has_is_named() -> None:
    said = await why("redis://redis.invalid:6379/0")
    assert said.startswith("cannot be reached at redis.invalid:6379 (")
    assert said.endswith("); check that it runs, and REDIS_URL")


@pytest.fixture
async def web_server() -> AsyncIterator[int]:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_what_is_not_a_redis_is_named(web_server: int) -> None:
    where = f"127.0.0.1:{web_server}"
    assert (
        await why(f"redis://:{SECRET}@{where}/0")
        == f"what answers at {where} is not a Redis; check REDIS_URL"
    )


@pytest.mark.parametrize(
    "url", ["redis://host?nonsense=1", "redis://host/name", "redis://host:port/0", "http://host"]
)
def test_a_url_that_cannot_be_used_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="write it like redis://host:6379/0"):
        RedisAddress(url)


@pytest.mark.parametrize(
    "url, shown, database",
    [
        (f"redis://:{SECRET}@cache", "cache:6379", 0),
        (f"rediss://me:{SECRET}@cache:7000/3", "cache:7000", 3),
        ("redis://[::1]:7000/3", "[::1]:7000", 3),
        ("redis://cache?db=4", "cache:6379", 4),
    ],
)
def test_an_address_is_shown_without_what_is_secret(url: str, shown: str, database: int) -> None:
    address = RedisAddress(url)
    assert str(address) == shown
    assert address.database == database
    assert SECRET not in repr(address)

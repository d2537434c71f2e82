"""On Postgres nobody holds a lock for long, and what the network does to a transaction is told apart."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import select, update

from storage import tables as t
from storage.engine import Database
from storage.errors import CommitUnknown, DatabaseAway, DatabaseUnusable
from storage.postgres_engine import IDLE_IN_TRANSACTION_S, POOL_SIZE
from tests.servers.postgres_wire import CommitFaults, Lost, PostgresWire
from tests.servers.proxy import Proxy
from tests.storage.fresh import driven, drop, postgres_url, shared_postgres
from tests.storage.world import World


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a database of this test's own."""
    url = postgres_url()
    yield url
    drop(url)


@pytest.fixture
def faults() -> CommitFaults:
    """What happens to the answers to COMMIT."""
    return CommitFaults()


@pytest.fixture
def proxy(faults: CommitFaults) -> Iterator[Proxy]:
    """What stands between the program and the server."""
    proxy = Proxy(shared_postgres().port, lambda: PostgresWire(faults)).start()
    yield proxy
    proxy.close()


@pytest.fixture
async def far(url: str, proxy: Proxy) -> AsyncIterator[Database]:
    """The database behind the proxy."""
    name = url.rpartition("/")[2]
    database = await Database.open(driven(shared_postgres().url(name, port=proxy.port)))
    yield database
    proxy.pass_on()
    await database.close()


async def add_one(tx: object) -> None:
    await tx.execute(update(t.conversations).values(next_call=t.conversations.c.next_call + 1))  # type: ignore[attr-defined]


async def count(database: Database) -> int:
    return int((await World(database).conversation()).next_call) - 1


# --- locks --------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_who_is_frozen_inside_a_transaction_is_thrown_out_and_holds_nobody_up(
    database: Database, url: str
) -> None:
    await World(database).hears()
    frozen = await Database.open(url)

    async def freeze(tx: object) -> None:
        await add_one(tx)
        await asyncio.sleep(IDLE_IN_TRANSACTION_S + 3)
        await tx.execute(select(1))  # type: ignore[attr-defined]

    frozen.patience_s = 0.0
    sleeper = asyncio.create_task(frozen.write(freeze))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await database.write(add_one)
    assert time.monotonic() - began < IDLE_IN_TRANSACTION_S + 1
    with pytest.raises(DatabaseAway):
        await sleeper
    assert await count(database) == 1
    await frozen.close()


async def test_more_writers_than_connections_wait_for_their_turn(database: Database) -> None:
    await World(database).hears()
    await asyncio.gather(*(database.write(add_one) for _ in range(POOL_SIZE * 4)))
    assert await count(database) == POOL_SIZE * 4


async def test_two_that_wait_for_each_other_both_come_through(database: Database) -> None:
    await World(database).hears()
    await World(database).insert(t.schema_floor, revision="other")

    async def both(tx: object, first: str) -> None:
        statements = {
            "a": update(t.conversations).values(next_call=t.conversations.c.next_call + 1),
            "b": update(t.schema_floor).values(revision=t.schema_floor.c.revision + "x"),
        }
        for name in (first, *(set(statements) - {first})):
            await tx.execute(statements[name])  # type: ignore[attr-defined]
            await asyncio.sleep(0.2)

    await asyncio.gather(database.write(both, "a"), database.write(both, "b"))
    assert await count(database) == 2


# --- the network --------------------------------------------------------------------------------------------


async def test_sessions_that_are_ended_do_their_transaction_again_once(database: Database, url: str) -> None:
    await World(database).hears()
    entered = 0

    async def interrupted(tx: object) -> None:
        nonlocal entered
        entered += 1
        await add_one(tx)
        if entered == 1:
            await shared_postgres().end_sessions(url.rpartition("/")[2])
        await add_one(tx)

    await database.write(interrupted)
    assert (entered, await count(database)) == (2, 2)


async def test_a_commit_whose_answer_is_lost_is_unknown_and_was_done(
    far: Database, faults: CommitFaults
) -> None:
    await World(far).hears()
    faults.plan(Lost.AFTER)
    with pytest.raises(CommitUnknown):
        await far.write(add_one)
    assert await count(far) == 1  # once: nobody did it again


async def test_a_commit_that_never_arrived_is_unknown_too_and_was_not_done(
    far: Database, faults: CommitFaults
) -> None:
    await World(far).hears()
    faults.plan(Lost.BEFORE)
    with pytest.raises(CommitUnknown):
        await far.write(add_one)
    assert await count(far) == 0


async def test_a_database_that_is_away_for_a_moment_delays_and_fails_nobody(
    far: Database, proxy: Proxy
) -> None:
    await World(far).hears()
    proxy.refuse()
    writing = asyncio.create_task(far.write(add_one))
    reading = asyncio.create_task(count(far))
    await asyncio.sleep(0.7)
    assert not writing.done()
    proxy.pass_on()
    async with asyncio.timeout(5):
        await writing
        await reading
    assert await count(far) == 1


async def test_a_database_that_stays_away_is_said_to_be_and_nothing_was_done(
    far: Database, proxy: Proxy
) -> None:
    await World(far).hears()
    far.patience_s = 0.5
    proxy.refuse()
    with pytest.raises(DatabaseAway) as away:
        await far.write(add_one)
    assert "\n" not in str(away.value)
    proxy.pass_on()
    assert await count(far) == 0


async def test_closing_does_not_wait_for_a_database_that_is_away(far: Database, proxy: Proxy) -> None:
    await World(far).hears()
    proxy.refuse()
    writing = asyncio.create_task(far.write(add_one))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(3):
        await far.close()
    with pytest.raises(DatabaseAway):
        await writing


# --- what cannot be opened ----------------------------------------------------------------------------------


async def test_a_server_that_nobody_reaches_may_be_reached_later(proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(DatabaseUnusable, match="check that it runs there") as unusable:
        await Database.open(driven(shared_postgres().url("postgres", port=proxy.port)))
    assert unusable.value.away
    assert "\n" not in str(unusable.value)


async def test_a_database_that_does_not_exist_is_a_mistake_in_the_address() -> None:
    with pytest.raises(DatabaseUnusable, match="create that database") as unusable:
        await Database.open(driven(shared_postgres().url("no_such_database")))
    assert not unusable.value.away


async def test_a_wrong_password_is_a_mistake_in_the_address() -> None:
    server = shared_postgres()
    await server.execute("create role locked login password 'right'")
    hba = server.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + before)
    try:
        await server.execute("select pg_reload_conf()")
        await asyncio.sleep(0.2)
        url = driven(server.url("postgres").replace("postgres@", "locked:wrong@"))
        with pytest.raises(DatabaseUnusable, match="the password") as unusable:
            await Database.open(url)
        assert not unusable.value.away
        assert "wrong@" not in str(unusable.value)
    finally:
        hba.write_text(before)
        await server.execute("select pg_reload_conf()")
        await server.execute("drop role locked")


# --- encryption ---------------------------------------------------------------------------------------------


class Encrypted:
    """The server behind TLS, which the build that tests use cannot speak itself."""

    def __init__(self, certificate: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(
            certificate.with_suffix(".server.crt"), certificate.with_suffix(".server.key")
        )
        self.tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Encrypted:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the request for encryption, encrypt, and pass everything on."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            assert await reader.readexactly(8) == bytes.fromhex("0000000804d2162f")
            writer.write(b"S")
            await writer.start_tls(self._context)
            inside = await asyncio.open_connection("127.0.0.1", shared_postgres().port)
            for source, target in ((reader, inside[1]), (inside[0], writer)):
                task = asyncio.create_task(pass_on(source, target))
                self.tasks.add(task)


async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65_536):
            target.write(chunk)
            await target.drain()
    except OSError:
        return
    finally:
        target.close()


async def test_a_certificate_is_checked_where_the_address_says_so(tmp_path: Path) -> None:
    signed, other = authority(tmp_path, "signed"), authority(tmp_path, "other")
    async with Encrypted(signed) as server:
        address = driven(shared_postgres().url("postgres", port=server.port))
        for options in (
            "sslmode=require",
            f"sslmode=verify-ca&sslrootcert={signed}",
            f"sslmode=verify-full&sslrootcert={signed}",
        ):
            database = await Database.open(f"{address}?{options}")
            await database.close()
        for options in (f"sslmode=verify-ca&sslrootcert={other}", "sslmode=verify-full"):
            with pytest.raises(DatabaseUnusable, match="certificate"):
                await Database.open(f"{address}?{options}")


async def test_encryption_that_the_server_does_not_offer_is_asked_for_in_vain(url: str) -> None:
    with pytest.raises(DatabaseUnusable, match="SSL"):
        await Database.open(f"{url}?sslmode=require")
    database = await Database.open(f"{url}?sslmode=prefer")
    await database.close()


def authority(folder: Path, name: str) -> Path:
    """The certificate of an authority; beside it that of a server at 127.0.0.1 which it has signed."""
    path = folder / f"{name}.crt"
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    ours = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def signed(subject: x509.Name, public: Any, extension: x509.ExtensionType) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ours)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=False)
        )
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    path.write_bytes(signed(ours, key.public_key(), x509.BasicConstraints(ca=True, path_length=None)))
    servers = ec.generate_private_key(ec.SECP256R1())
    host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    path.with_suffix(".server.crt").write_bytes(signed(subject, servers.public_key(), host))
    path.with_suffix(".server.key").write_bytes(
        servers.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return path


# --- what only a program that looks at both can say ---------------------------------------------------------


async def test_every_session_carries_the_limits(database: Database, url: str) -> None:
    async def setting(tx: object, name: str) -> str:
        return str((await tx.exec_driver_sql(f"show {name}")).scalar_one())  # type: ignore[attr-defined]

    assert await database.read(setting, "idle_in_transaction_session_timeout") == "2s"
    assert await database.read(setting, "lock_timeout") == "4s"
    assert await database.read(setting, "statement_timeout") == "5s"
    assert await database.read(setting, "transaction_isolation") == "repeatable read"
    assert await database.write(setting, "transaction_isolation") == "read committed"
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        name = "select count(*) from pg_stat_activity where application_name = 'watchkeeper' and datname = $1"
        assert await connection.fetchval(name, url.rpartition("/")[2]) >= 1
    finally:
        await connection.close()

"""Postgres: one pool; transactions READ COMMITTED behind the fence, reads in a snapshot of their own.

Rule: nobody holds a lock for long, dead or alive. A process that is frozen inside a transaction is thrown out
by the server after `IDLE_IN_TRANSACTION_S`, else it would hold up its own successor for as long as it sleeps.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

POOL_SIZE = 10
"""Connections of one process; the lookout holds one more."""

CONNECT_WITHIN_S = 5.0
LOCK_S = 4.0
STATEMENT_S = 5.0
IDLE_IN_TRANSACTION_S = 2.0

LIMITS: Mapping[str, str] = {
    "application_name": "watchkeeper",
    "lock_timeout": f"{LOCK_S * 1000:.0f}",
    "statement_timeout": f"{STATEMENT_S * 1000:.0f}",
    "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S * 1000:.0f}",
    # A host that is gone says no goodbye: the server notices within 10 s and gives its locks back.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "10000",
    # Short statements only: compiling them would take longer than running them.
    "jit": "off",
}
"""Settings of every session of ours: https://www.postgresql.org/docs/current/runtime-config-client.html"""

UNHURRIED: Mapping[str, str] = {
    **LIMITS,
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "60000",
}
"""For migrations, which bound their waits for locks by themselves, and for reports that people ask for."""


def engines(url: URL, *, unhurried: bool = False) -> tuple[AsyncEngine, AsyncEngine]:
    """The engine that writes, and the one that reads over the same connections."""
    engine = create_async_engine(
        url.set(query={}),
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=30,
        connect_args=connect_args(url, UNHURRIED if unhurried else LIMITS),
    )
    return engine, engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def glancing(engine: AsyncEngine) -> AsyncEngine:
    """The engine for reads of one statement over the same connections: no way to the server but its own."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def connect_args(url: URL, limits: Mapping[str, str] = LIMITS) -> dict[str, Any]:
    """What each connection is opened with."""
    return {
        "timeout": CONNECT_WITHIN_S,
        # The server's limit goes first, if the server can be heard.
        "command_timeout": STATEMENT_S + 2 if limits is LIMITS else None,
        "server_settings": dict(limits),
        "prepared_statement_cache_size": 400,
        "ssl": _encryption({name: str(value) for name, value in url.query.items()}),
    }


def _encryption(options: Mapping[str, str]) -> ssl.SSLContext | str:
    """How to encrypt, from libpq's options; certificates are checked against the system's authorities.

    https://www.postgresql.org/docs/current/libpq-ssl.html
    """
    mode = options.get("sslmode", "prefer")
    files = {name: options[name] for name in ("sslrootcert", "sslcert", "sslkey") if name in options}
    if mode not in CHECKED and not files:
        return mode
    context = ssl.create_default_context(cafile=files.get("sslrootcert"))
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if mode in CHECKED or "sslrootcert" in files else ssl.CERT_NONE
    if "sslcert" in files:
        context.load_cert_chain(files["sslcert"], files.get("sslkey"))
    return context


CHECKED = frozenset({"verify-ca", "verify-full"})
"""Modes that want the server's certificate signed by an authority."""

AGAIN = frozenset({"40001", "40P01", "55P03", "57014", "25P03"})
"""Serialization, deadlock, lock and statement limits, thrown out while idle: the whole transaction again.

Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

AWAY = ("08", "57P", "53300")
"""No connection, shutting down or starting, too many connections: the same a little later."""

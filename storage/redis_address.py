"""Where Redis (or Valkey) is, how it is connected to, and in plain words why it cannot be used."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Connection, ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    InvalidResponse,
    NoPermissionError,
    RedisError,
    ResponseError,
)

NAMESPACE = "watchkeeper"
ANSWER_WITHIN_S = 2.0
NOT_USABLE = (RedisError, OSError, TimeoutError)
"""What a try to use Redis may raise."""

OURS: dict[str, Any] = {
    "protocol": 2,  # understood by every version, and bells need no more
    "decode_responses": False,
    "retry": Retry(NoBackoff(), 0),  # whoever asks decides whether to ask again
    "retry_on_timeout": False,
    # Answers are waited for under limits of our own: the library's swallow a cancel on Python 3.11.
    "socket_timeout": None,
    "socket_connect_timeout": ANSWER_WITHIN_S,
    "health_check_interval": 0,
}


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """One database of one Redis. Shows as HOST:PORT; the URL may hold a password."""

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        try:
            int(urlsplit(self.url).path.strip("/") or 0)  # the library would take the first database instead
            self._pool().make_connection()
        except (TypeError, ValueError, RedisError):
            raise ValueError("is not a URL that can be used; write it like redis://host:6379/0") from None

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or 6379}"

    @property
    def database(self) -> int:
        """The number of the database. Channels are shared by all of them, so it is part of their names."""
        return int(self._pool().connection_kwargs.get("db") or 0)

    def client(self) -> Redis:
        """A client with connections of its own; give it up whole when an answer of it was lost."""
        return Redis.from_pool(self._pool())

    def connection(self) -> Connection:
        """One connection, not connected yet."""
        connection: Connection = self._pool().make_connection()
        return connection

    def why(self, error: Exception) -> str:
        """One line for people, to be put behind "Redis: "; never the password."""
        words = next(say(self, error) for kind, say in REASONS if isinstance(error, kind))
        return self._redacted(words)

    def _pool(self) -> ConnectionPool:
        pool = ConnectionPool.from_url(self.url)
        pool.connection_kwargs.update(OURS)
        return pool

    def _redacted(self, text: str) -> str:
        password = str(self._pool().connection_kwargs.get("password") or "")
        return text.replace(password, "***") if password else text


def _rejected(address: RedisAddress, error: Exception) -> str:
    if "without any password" in str(error):
        return f"{address} takes no password; leave it out of REDIS_URL"
    return f"{address} rejects the password; set it in REDIS_URL (redis://:PASSWORD@{address}/0)"


def _not_allowed(address: RedisAddress, error: Exception) -> str:
    return f"{address} does not allow it ({_line(error)}); give this user the rights to it"


def _refused(address: RedisAddress, error: Exception) -> str:
    return f"{address} refuses ({_line(error)}); check REDIS_URL"


def _not_a_redis(address: RedisAddress, _: Exception) -> str:
    return f"what answers at {address} is not a Redis; check REDIS_URL"


def _unreachable(address: RedisAddress, error: Exception) -> str:
    return f"cannot be reached at {address} ({_cause(error)}); check that it runs, and REDIS_URL"


REASONS: tuple[tuple[type[Exception], Callable[[RedisAddress, Exception], str]], ...] = (
    (AuthenticationError, _rejected),
    (NoPermissionError, _not_allowed),
    (ResponseError, _refused),
    (InvalidResponse, _not_a_redis),
    (Exception, _unreachable),
)
"""The first that fits is said."""


def _cause(error: Exception) -> str:
    """The system's own word for it, which the library wraps in a sentence with the address."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, TimeoutError) or "Timeout" in type(below).__name__:
            return "no answer in time"
        if isinstance(below, socket.gaierror):
            return str(below.strerror)
        if isinstance(below, OSError) and below.errno is not None and below.errno > 0:
            return os.strerror(below.errno)
        below = below.__cause__ or below.__context__
    return _line(error)


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

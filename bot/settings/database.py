"""The forms of `DATABASE_URL`, and the URL for the async driver that the program chooses."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from bot.errors import Unusable

FORMS = "write sqlite:///path/to/file.db or postgresql://user:password@host:5432/name"
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
TLS_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
DEFAULT_FOLDER = ".watchkeeper"
DEFAULT_FILE = "watchkeeper.db"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where the database is. `url` may hold a password and is not shown; `path` is set for SQLite only."""

    url: str = field(repr=False)
    path: Path | None
    is_default: bool = False
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        if self.path is not None:
            return f"SQLite file {self.path}"
        return f"Postgres at {parts.hostname or 'the local socket'}{parts.path}"


def default(cwd: Path) -> DatabaseAddress:
    """The file in `.watchkeeper/` below the working directory."""
    return _sqlite(cwd / DEFAULT_FOLDER / DEFAULT_FILE, is_default=True)


def parse(text: str, cwd: Path) -> DatabaseAddress:
    """The address in `DATABASE_URL`; ValueError says the mend, never the value: it may hold a password."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ValueError(f"is not a URL; {FORMS}")
    if scheme == "sqlite":
        return _parse_sqlite(rest, cwd)
    if scheme == "postgresql":
        return _parse_postgres(text)
    if scheme.split("+")[0] in {"sqlite", "postgresql"}:
        raise ValueError(f"names a driver, which the program chooses itself; {FORMS}")
    raise ValueError(f'has the scheme "{scheme[:20]}", which is not supported; {FORMS}')


def _parse_sqlite(rest: str, cwd: Path) -> DatabaseAddress:
    name = rest.removeprefix("/")
    if not rest.startswith("/") or not name:
        raise ValueError("names no file; write sqlite:///path/to/file.db (four slashes for an absolute path)")
    if name == ":memory:":
        raise ValueError(
            "cannot be in memory: records must outlive the process; write sqlite:///path/to/file.db"
        )
    if "?" in name or "\0" in name:
        raise ValueError("has options, which are not supported for SQLite; write sqlite:///path/to/file.db")
    if name.endswith("/"):
        raise ValueError("names a folder; write sqlite:///path/to/file.db")
    return _sqlite(cwd / name)


def _sqlite(path: Path, *, is_default: bool = False) -> DatabaseAddress:
    return DatabaseAddress(f"sqlite+aiosqlite:///{path}", path, is_default)


def _parse_postgres(text: str) -> DatabaseAddress:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"is not a URL with a host and a port from 1 to 65535; {FORMS}") from None
    if port == 0 or not parts.path.strip("/") or "/" in parts.path.strip("/"):
        raise ValueError(f"names no database; {FORMS}")
    options = _options(parts.query)
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    url = f"postgresql+asyncpg://{parts.netloc}{parts.path}{query}"
    return DatabaseAddress(url, None, password=unquote(parts.password or ""))


def _options(query: str) -> dict[str, str]:
    """What may follow the name: how the connection is encrypted, in libpq's words."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name not in TLS_OPTIONS:
            raise ValueError(
                f"has the option {name[:40]}, which is not supported; known: {', '.join(TLS_OPTIONS)}"
            )
        if name == "sslmode" and value not in TLS_MODES:
            raise ValueError(f"has an unknown sslmode; write one of {', '.join(TLS_MODES)}")
        if name != "sslmode" and not Path(value).is_file():
            raise ValueError(f"names a file as {name} that does not exist; correct the path")
    if "sslkey" in options and "sslcert" not in options:
        raise ValueError("names sslkey without sslcert; name both")
    return options


def make_folder(address: DatabaseAddress) -> None:
    """Make sure that a SQLite file can be made at its place; raises Unusable with the mend."""
    if address.path is None:
        return
    folder = address.path.parent
    try:
        if address.is_default:
            folder.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise Unusable(f"DATABASE_URL: there is no folder {folder}; create it or name another file")
        if address.path.is_dir():
            raise Unusable(f"DATABASE_URL: {address.path} is a folder; name a file in it")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Unusable(
            f"DATABASE_URL: {folder} cannot be used ({reason}); set DATABASE_URL to a file elsewhere"
        ) from None
    target = address.path if address.path.exists() else folder
    if not os.access(target, os.W_OK):
        raise Unusable(f"DATABASE_URL: {target} may not be written by this user; name another file")

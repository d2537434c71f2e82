"""Faults inside a process: loaded only in the Watchkeeper that is to be struck, before it starts.

Everything that leaves the process passes one of four doors: a statement, a COMMIT, an HTTP request or
WebSocket message of aiohttp (Slack), a request of httpx2 (the model, tool servers) with the tool calls in it.
Each door numbers who passes, and does at one of them what the plan says.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from contextvars import ContextVar
from functools import wraps
from typing import Any

import aiohttp
import httpx2
import mcp_types
from aiohttp import ClientConnectionResetError, ServerDisconnectedError
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.default import DefaultDialect
from yarl import URL

from storage.engine import Database
from tests.kill_points.points import KILLS, STRUCK, Fault, Kind, Plan, Point

FOR_EVER_S = 3_600

FEW_TIMES = 2
"""Reads leave nothing behind and come by time, like a few writes: so often each is a point of its own."""

BY_TIME = frozenset({"conversations.renew", "claims.renew", "cards.heartbeat", "cards.sweep"})

FRAMES = frozenset({"BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK"})
"""What surrounds transactions on SQLite is the same for all of them, and as the statement beside it."""

VERB = re.compile(
    r"\s*(?:with .*?\)\s*)?(select|insert|update|delete|begin|pragma)\b(?:.*?\b(?:from|into|update)\s+(\w+))?"
    r"|\s*(\w+)",
    re.IGNORECASE | re.DOTALL,
)
UPDATED = re.compile(r"\s*update\s+(\w+)", re.IGNORECASE)

_transaction: ContextVar[str] = ContextVar("transaction", default="outside of transactions")
_reads: ContextVar[bool] = ContextVar("reads", default=True)


class Watch:
    """Numbers what passes, writes it down, and strikes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._file = os.open(plan.passed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._seen: Counter[str] = Counter()
        self.black_hole = plan.black_hole

    def passes(self, kind: Kind, name: str) -> Point:
        """Somebody passes a door."""
        self._seen[name] += 1
        point = Point(self._plan.life, kind, name, self._seen[name])
        self._write(f"{point.life}\t{kind}\t{name}\t{point.number}")
        return point

    def is_new(self, name: str) -> bool:
        """Whether this has not passed often yet."""
        return self._seen[name] < FEW_TIMES

    def strikes(self, point: Point | None, *faults: Fault) -> Fault | None:
        """Which of these faults happens here, if any. A SIGKILL needs no answer."""
        strike = self._plan.strike
        if point is None or strike is None or strike.point != point or strike.fault not in faults:
            return None
        self._write(f"{STRUCK}\t{strike}")
        if strike.fault in KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if strike.fault is Fault.FREEZE:
            os.kill(os.getpid(), signal.SIGSTOP)
        return strike.fault

    def _write(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())


BEFORE = (Fault.KILL_BEFORE, Fault.ERROR_BEFORE, Fault.HANG, Fault.FREEZE)
AFTER = (Fault.KILL_AFTER, Fault.ERROR_AFTER)


def install(plan: Plan) -> None:
    """Put the doors in place."""
    watch = Watch(plan)
    _name_transactions()
    _watch_statements(watch)
    _watch_commits(watch)
    _watch_aiohttp(watch)
    _watch_httpx(watch)
    _watch_tool_calls(watch)


# --- the database -----------------------------------------------------------------------------------------


def _name_transactions() -> None:
    """Statements bear the name of the storage function that asked for them, whichever task runs them."""

    def named(method: Any, *, reads: bool) -> Any:
        @wraps(method)
        async def run(self: Database, transaction: Any, *args: Any, **kwargs: Any) -> Any:
            module = transaction.__module__.rpartition(".")[2]

            async def known(tx: Any, *args: Any, **kwargs: Any) -> Any:
                # Not taken back: the COMMIT that follows bears the name too, of the last one in its group.
                _transaction.set(f"{module}.{transaction.__qualname__}")
                _reads.set(reads)
                return await transaction(tx, *args, **kwargs)

            return await method(self, known, *args, **kwargs)

        return run

    for method, reads in (("read", True), ("write", False), ("write_first", False)):
        setattr(Database, method, named(getattr(Database, method), reads=reads))


def _watch_statements(watch: Watch) -> None:
    def before(  # noqa: PLR0917  as SQLAlchemy calls it
        connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> tuple[str, Any]:
        context.point_passed = point = _statement(watch, statement)
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise _lost_connection(connection)
            case Fault.HANG:
                _hang(connection)
        return statement, parameters

    def after(  # noqa: PLR0917
        connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        if watch.strikes(getattr(context, "point_passed", None), *AFTER):
            raise _lost_connection(connection)

    event.listen(Engine, "before_cursor_execute", before, retval=True)
    event.listen(Engine, "after_cursor_execute", after)


def _statement(watch: Watch, statement: str) -> Point | None:
    frames = statement.split(maxsplit=1)[0] in FRAMES
    name = f"{'writing' if frames else _transaction.get()}: {_said(statement)}"
    few = frames or _reads.get() or _transaction.get() in BY_TIME
    if statement == "BEGIN" or (few and not watch.is_new(name)):
        return None
    return watch.passes(Kind.STATEMENT, name)


def _said(statement: str) -> str:
    """The verb and the table: "insert turns"."""
    if updated := UPDATED.match(statement):
        return f"update {updated[1]}"
    found = VERB.match(statement)
    if found is None:
        return statement[:20]
    verb = (found[1] or found[3] or "").lower()
    return f"{verb} {found[2]}" if found[2] else verb


def _watch_commits(watch: Watch) -> None:
    do_commit = DefaultDialect.do_commit

    def commit(self: DefaultDialect, connection: Any) -> None:
        name = f"{_transaction.get()}: COMMIT"
        rare = _transaction.get() not in BY_TIME or watch.is_new(name)
        point = watch.passes(Kind.COMMIT, name) if rare else None
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise _lost(self, connection.driver_connection)
            case Fault.HANG:
                _hang_driver(self, connection)
        do_commit(self, connection)  # type: ignore[no-untyped-call]
        if watch.strikes(point, *AFTER):
            raise _lost(self, connection.driver_connection)

    DefaultDialect.do_commit = commit  # type: ignore[method-assign]


def _lost_connection(connection: Connection) -> Exception:
    return _lost(connection.dialect, connection.connection.driver_connection)


def _lost(dialect: Any, driver: Any) -> Exception:
    """The connection is gone, and the driver says so in its own words."""
    error: Exception
    if dialect.name == "sqlite":
        error = dialect.loaded_dbapi.OperationalError("no active connection")
        return error
    driver.terminate()
    error = dialect.loaded_dbapi.InterfaceError("connection is closed")
    return error


def _hang(connection: Connection) -> None:
    """SQLite has nobody to wait for but the disk: all stands still. Postgres just does not answer."""
    if connection.dialect.name == "sqlite":
        time.sleep(FOR_EVER_S)
    connection.connection.cursor().execute(f"select pg_sleep({FOR_EVER_S})")


def _hang_driver(dialect: Any, connection: Any) -> None:
    if dialect.name == "sqlite":
        time.sleep(FOR_EVER_S)
    connection.cursor().execute(f"select pg_sleep({FOR_EVER_S})")


# --- Slack ----------------------------------------------------------------------------------------------


def _watch_aiohttp(watch: Watch) -> None:
    request, send = aiohttp.ClientSession._request, aiohttp.ClientWebSocketResponse.send_str

    async def requested(self: aiohttp.ClientSession, method: str, url: Any, **more: Any) -> Any:
        last = URL(url).path.rstrip("/").rpartition("/")[2]
        point = watch.passes(Kind.CALL, f"slack {last}")
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise ServerDisconnectedError
            case Fault.HANG:
                return await request(self, method, f"http://127.0.0.1:{watch.black_hole}/{last}", **more)
        answer = await request(self, method, url, **more)
        if watch.strikes(point, *AFTER):
            answer.close()
            raise ServerDisconnectedError
        return answer

    async def sent(self: aiohttp.ClientWebSocketResponse, data: str, *args: Any) -> None:
        point = watch.passes(Kind.CALL, "slack acknowledge")
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise ClientConnectionResetError("Cannot write to closing transport")
            case Fault.HANG:
                return  # the network took it and never delivered it
        await send(self, data, *args)
        if watch.strikes(point, *AFTER):
            raise ClientConnectionResetError("Cannot write to closing transport")

    aiohttp.ClientSession._request = requested  # type: ignore[method-assign, assignment]
    aiohttp.ClientWebSocketResponse.send_str = sent  # type: ignore[method-assign, assignment]


# --- the model and the tools ------------------------------------------------------------------------------


def _watch_httpx(watch: Watch) -> None:
    send = httpx2.AsyncClient.send

    async def sent(self: httpx2.AsyncClient, request: httpx2.Request, **more: Any) -> httpx2.Response:
        name = _request_name(request)
        point = watch.passes(Kind.CALL, name) if name else None
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise httpx2.ConnectError("All connection attempts failed", request=request)
            case Fault.HANG:
                request.url = request.url.copy_with(host="127.0.0.1", port=watch.black_hole)
        answer = await send(self, request, **more)
        if watch.strikes(point, *AFTER):
            await answer.aclose()
            raise httpx2.ReadError("the connection was reset", request=request)
        return answer

    httpx2.AsyncClient.send = sent  # type: ignore[method-assign]


def _request_name(request: httpx2.Request) -> str | None:
    """What a request asks; None for tool calls, which are met where their answer is known."""
    if request.url.path.endswith("/messages"):
        return "model messages"
    try:
        method = json.loads(request.content).get("method", "answer")
    except (ValueError, httpx2.RequestNotRead):
        method = request.method
    return None if method == "tools/call" else f"tools {method}"


def _watch_tool_calls(watch: Watch) -> None:
    send_request = ClientSession.send_request
    gone = MCPError(mcp_types.CONNECTION_CLOSED, "Connection closed")

    async def sent(self: ClientSession, request: Any, *args: Any, **more: Any) -> Any:
        if not isinstance(request, mcp_types.CallToolRequest):
            return await send_request(self, request, *args, **more)
        point = watch.passes(Kind.CALL, f"tool {request.params.name}")
        match watch.strikes(point, *BEFORE):
            case Fault.ERROR_BEFORE:
                raise gone
            case Fault.HANG:
                await asyncio.sleep(FOR_EVER_S)
        answer = await send_request(self, request, *args, **more)
        if watch.strikes(point, *AFTER):
            raise gone
        return answer

    ClientSession.send_request = sent  # type: ignore[method-assign]

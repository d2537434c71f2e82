"""Postgres' wire as a proxy sees it: which transaction commits, and a connection lost around its COMMIT.

Format of messages: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from tests.servers.proxy import Cut, Part, Wire

ASKS_FOR_ENCRYPTION = frozenset({80877103, 80877104})  # answered by one byte, then a start-up message follows


class Lost(Enum):
    """On which side of the COMMIT the connection is lost."""

    BEFORE = "the COMMIT never reaches the server"
    AFTER = "the COMMIT was done and its answer is lost"


@dataclass
class CommitFaults:
    """Which of the next COMMITs are met; `met` holds the statements of those that were."""

    met: list[str] = field(default_factory=list)
    seen: int = 0
    _left: int = 0
    _lost: Lost = Lost.AFTER
    _words: str = ""
    _how: Cut = Cut.RESET

    def plan(self, lost: Lost, times: int = 1, *, words: str = "", how: Cut = Cut.RESET) -> None:
        """Meet so many of the next COMMITs of transactions in which a statement holds these words."""
        self._lost, self._words, self._how, self._left = lost, words.lower(), how, times

    def forget(self) -> None:
        """Meet none any more."""
        self._left = 0

    @property
    def left(self) -> int:
        """How many are still to be met."""
        return self._left

    def take(self, lost: Lost, statements: str) -> Cut | None:
        """What becomes of the connection at this COMMIT; None when it is left alone."""
        if self._left <= 0 or lost is not self._lost or self._words not in statements:
            return None
        self._left -= 1
        self.met.append(statements)
        return self._how


class PostgresWire(Wire):
    """One connection, message by message."""

    def __init__(self, faults: CommitFaults) -> None:
        self._faults = faults
        self._client, self._server = bytearray(), bytearray()
        self._starting = True
        self._bare_bytes_due = 0
        self._prepared: dict[str, str] = {}
        self._transaction: list[str] = []
        self._committing = False

    def to_server(self, chunk: bytes) -> Iterator[Part]:
        """Notes what is asked for; a COMMIT may end here."""
        self._client += chunk
        while frame := self._client_frame():
            if not self._starting and self._is_commit(frame):
                self._faults.seen += 1
                self._committing = True
                if cut := self._faults.take(Lost.BEFORE, self._statements):
                    yield cut
                    return
            yield frame

    def to_client(self, chunk: bytes) -> Iterator[Part]:
        """Passes answers on; that of a COMMIT may end here."""
        self._server += chunk
        while frame := self._server_frame():
            if self._committing and frame[:1] == b"C":
                self._committing = False
                cut = None
                if _text(frame, 5) == "COMMIT":
                    cut = self._faults.take(Lost.AFTER, self._statements)
                self._transaction.clear()
                if cut is not None:
                    yield cut
                    return
            yield frame

    @property
    def _statements(self) -> str:
        return "\n".join(self._transaction).lower()

    def _client_frame(self) -> bytes:
        if not self._starting:
            return _typed(self._client)
        frame = _sized(self._client, 0)
        if len(frame) >= 8:
            if struct.unpack_from("!i", frame, 4)[0] in ASKS_FOR_ENCRYPTION:
                self._bare_bytes_due += 1
            else:
                self._starting = False
        return frame

    def _server_frame(self) -> bytes:
        if self._bare_bytes_due and self._server:
            self._bare_bytes_due -= 1
            return _taken(self._server, 1)
        return _typed(self._server)

    def _is_commit(self, frame: bytes) -> bool:
        """Whether it is a COMMIT; every other statement is remembered as part of its transaction."""
        match frame[:1]:
            case b"Q":
                statement = _text(frame, 5)
                if statement.strip().rstrip(";").upper() == "COMMIT":
                    return True
                self._remember(statement)
            case b"P":
                name = _text(frame, 5)
                self._prepared[name] = _text(frame, 5 + len(name.encode()) + 1)
            case b"B":
                portal = _text(frame, 5)
                self._remember(self._prepared.get(_text(frame, 5 + len(portal.encode()) + 1), ""))
        return False

    def _remember(self, statement: str) -> None:
        if statement.upper().startswith("BEGIN"):
            self._transaction.clear()
        self._transaction.append(statement)


def _typed(buffer: bytearray) -> bytes:
    """The first whole message behind its one-letter type; nothing while it is not all there."""
    return _sized(buffer, 1)


def _sized(buffer: bytearray, offset: int) -> bytes:
    if len(buffer) < offset + 4:
        return b""
    size = offset + struct.unpack_from("!i", buffer, offset)[0]
    return _taken(buffer, size) if len(buffer) >= size else b""


def _taken(buffer: bytearray, size: int) -> bytes:
    taken = bytes(buffer[:size])
    del buffer[:size]
    return taken


def _text(frame: bytes, start: int) -> str:
    return frame[start : frame.index(b"\0", start)].decode(errors="replace")

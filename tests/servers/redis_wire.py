"""Redis' wire as a proxy sees it: published messages that are dropped, doubled or late on their way.

Format of answers: https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.servers.proxy import Part, Pause, Wire

COUNTED = b"*>~"
COUNTED_PAIRS = b"%|"
SIZED = b"$=!"
END = b"\r\n"
PUBLISHED = (b"*3\r\n$7\r\nmessage\r\n", b">3\r\n$7\r\nmessage\r\n")


@dataclass
class BellFaults:
    """Which shares of the published messages are dropped or doubled, and how late the others are."""

    chance: random.Random
    dropped: float = 0.0
    doubled: float = 0.0
    late_s: float = 0.0
    passed: int = 0
    lost: int = 0


class RedisWire(Wire):
    """One connection, answer by answer."""

    def __init__(self, faults: BellFaults) -> None:
        self._faults = faults
        self._buffer = bytearray()

    def to_client(self, chunk: bytes) -> Iterator[Part]:
        """Does to published messages what is to be done; everything else passes."""
        self._buffer += chunk
        while end := _end_of(self._buffer, 0):
            frame = bytes(self._buffer[:end])
            del self._buffer[:end]
            if frame.startswith(PUBLISHED):
                yield from self._published(frame)
            else:
                yield frame

    def _published(self, frame: bytes) -> Iterator[Part]:
        faults = self._faults
        if faults.chance.random() < faults.dropped:
            faults.lost += 1
            return
        if faults.late_s:
            yield Pause(faults.chance.uniform(0, faults.late_s))
        faults.passed += 1
        yield frame
        if faults.chance.random() < faults.doubled:
            yield frame


def _end_of(buffer: bytearray, start: int) -> int:
    """Where the answer that begins at `start` ends; 0 while it is not all there."""
    line_end = buffer.find(END, start)
    if line_end < 0:
        return 0
    kind, after = buffer[start : start + 1], line_end + 2
    if kind in SIZED:
        size = int(buffer[start + 1 : line_end])
        end = after + size + 2 if size >= 0 else after
        return end if len(buffer) >= end else 0
    if kind not in COUNTED + COUNTED_PAIRS:
        return after
    count = max(0, int(buffer[start + 1 : line_end])) * (2 if kind in COUNTED_PAIRS else 1)
    for _ in range(count):
        after = _end_of(buffer, after)
        if not after:
            return 0
    return after

"""What can go wrong between a caller and Slack, switched on by a test.

A fault applies to one method (or `*`), `times` times (None: until healed), and only to calls that
`when(args)` accepts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tests.servers.slack.shapes import Json

When = Callable[[Json], bool]


class Kind(Enum):
    DELAY = "delay"
    HANG = "hang"
    FAIL = "fail"
    RATE_LIMIT = "rate limit"
    LOSE_REPLY = "lose reply"


@dataclass(eq=False)
class Fault:
    kind: Kind
    method: str
    times: int | None = 1
    when: When | None = None
    error: str = "internal_error"
    status: int = 200
    seconds: float = 0.0
    applied: bool = False
    waiting: int = 0
    hit: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def takes(self, method: str, args: Json) -> bool:
        spent = self.times is not None and self.hit >= self.times
        named = self.method in (method, "*")
        return named and not spent and (self.when is None or self.when(args))

    def release(self) -> None:
        """Let the calls that hang go on, and every later one pass."""
        self.times = self.hit
        self._released.set()

    async def held(self) -> None:
        self.waiting += 1
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def take(self, kind: Kind, method: str, args: Json) -> Fault | None:
        for fault in self._faults:
            if fault.kind is kind and fault.takes(method, args):
                fault.hit += 1
                return fault
        return None

    def heal(self, method: str | None = None) -> None:
        """Take back the faults of one method, or all."""
        for fault in [f for f in self._faults if method in (None, f.method)]:
            fault.release()
            self._faults.remove(fault)

"""The log of every Web API call, in the order of arrival."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.servers.slack.shapes import Json


@dataclass(eq=False)
class Call:
    """`result` is None until the call is decided; `lost` when the caller never saw the result.

    `host` is the address that was called, which tells callers apart that each have a way of their own.
    """

    method: str
    args: Json
    raw: bytes
    token: str
    time: float = field(default_factory=time.monotonic)
    result: Json | None = None
    status: int = 0
    lost: bool = False
    done_at: float | None = None
    host: str = ""

    @property
    def ok(self) -> bool:
        return bool(self.result and self.result.get("ok"))

    @property
    def error(self) -> str | None:
        return None if self.result is None else self.result.get("error")

    def decided(self, result: Json, status: int = 200) -> None:
        self.result, self.status, self.done_at = result, status, time.monotonic()

    def line(self) -> str:
        verdict = "…" if self.result is None else ("ok" if self.ok else str(self.error))
        shown = {
            k: v
            for k, v in self.args.items()
            if k in ("channel", "ts", "thread_ts", "timestamp", "name", "text")
        }
        return f"{self.method} {shown} → {verdict}{' (answer lost)' if self.lost else ''}"


@dataclass(frozen=True)
class Violation:
    """Something Slack would not refuse at once but takes amiss."""

    method: str
    what: str
    args: Json
    time: float = field(default_factory=time.monotonic)

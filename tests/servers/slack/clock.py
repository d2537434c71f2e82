"""Message timestamps: real time in Slack's form, never twice the same and never backwards."""

from __future__ import annotations

import time


class TsClock:
    def __init__(self) -> None:
        self._last = 0

    def ts(self) -> str:
        self._last = max(self._last + 100, time.time_ns() // 1_000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"


def is_ts(value: object) -> bool:
    """Whether this reads like a message timestamp."""
    if not isinstance(value, str):
        return False
    seconds, dot, fraction = value.partition(".")
    return bool(dot) and seconds.isdigit() and fraction.isdigit()

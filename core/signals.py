"""The wishes that may end a turn, and their one order of priority.

Rule: the first that holds decides; the rest are not probed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.reasons import Reason


class Signal(StrEnum):
    """A wish to end the turn."""

    STOP = "stop"
    STEER = "steer"
    DRAIN = "drain"
    DISPATCHED = "dispatched"
    AWAITING = "awaiting"
    PARKED = "parked"


PRIORITY: tuple[Signal, ...] = (
    Signal.STOP,
    Signal.STEER,
    Signal.DRAIN,
    Signal.DISPATCHED,
    Signal.AWAITING,
    Signal.PARKED,
)

STAMP: Mapping[Signal, Reason] = {
    Signal.STOP: Reason.STOPPED,
    Signal.STEER: Reason.STEERED,
    Signal.DRAIN: Reason.DRAINED,
    Signal.DISPATCHED: Reason.DISPATCHED,
    Signal.AWAITING: Reason.AWAITING,
    Signal.PARKED: Reason.PARKED,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A signal that holds, and who or what raised it."""

    signal: Signal
    by: str

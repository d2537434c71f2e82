"""How long to wait before the platform is tried again."""

from __future__ import annotations

import random

from bot.errors import OutcomeUnknown, Rejected, Temporary

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
SPREAD = 0.25  # so that what failed together is not tried again together


def pause_s(tries: int, error: Exception | None = None) -> float:
    """The time that the platform asked for, else one that doubles with every try, up to a limit."""
    asked = error.retry_after_s if isinstance(error, Temporary) else None
    if asked:
        return asked
    growing = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries, 10))
    return growing * random.uniform(1 - SPREAD, 1 + SPREAD)


def is_outage(error: Exception) -> bool:
    """Whether others that wait have the same trouble: once one gets through, all may try."""
    if isinstance(error, Rejected | OutcomeUnknown):
        return True
    return isinstance(error, Temporary) and error.retry_after_s is None


class Outage:
    """Whether something has failed since something last got through."""

    def __init__(self) -> None:
        self._is_on = False

    def met(self, error: Exception) -> None:
        """Something failed."""
        self._is_on = self._is_on or is_outage(error)

    def is_over(self) -> bool:
        """Something got through; whether that ends an outage."""
        was_on, self._is_on = self._is_on, False
        return was_on


MEMORY_S = LONGEST_PAUSE_S * (1 + SPREAD)
"""What would be tried within so long may have waited for the outage's end."""

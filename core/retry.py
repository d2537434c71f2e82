"""When a failed model request is tried again, and when no more."""

from __future__ import annotations

FIRST_S = 0.5
LONGEST_S = 30.0


def next_delay(
    tries: int, waited_s: float, retry_for_s: float, retry_after_s: float | None, jitter: float
) -> float | None:
    """Seconds to wait after `tries` failures (from 1), or None when the bound on all waiting would be passed.

    Doubles from half a second to thirty; `jitter` in [0, 1) takes off up to half, so that workers that failed
    together do not come back together. What the provider asked for is never undercut, whatever the cap.
    """
    doubled = min(LONGEST_S, FIRST_S * 2.0 ** min(max(tries - 1, 0), 16))
    delay = doubled * (1 - jitter / 2)
    if retry_after_s is not None and retry_after_s > delay:
        delay = retry_after_s
    return delay if waited_s + delay <= retry_for_s else None

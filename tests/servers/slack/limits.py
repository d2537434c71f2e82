"""Slack's rate limits, per method and workspace; messages also per channel.

`scale` 1 is Slack's own pace, 10 is ten times faster, None is no limit. A limited call is told when
to come back; one that comes sooner is refused again and noted as a violation.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Mapping

MINUTE = 60.0
TIER_1, TIER_2, TIER_3, TIER_4, SPECIAL = 1, 20, 50, 100, 300

PER_MINUTE: Mapping[str, int] = {
    "apps.connections.open": TIER_3,
    "auth.test": SPECIAL,
    "bots.info": TIER_3,
    "chat.delete": TIER_3,
    "chat.getPermalink": SPECIAL,
    "chat.postEphemeral": TIER_4,
    "chat.postMessage": SPECIAL,
    "chat.update": TIER_3,
    "conversations.history": TIER_3,
    "conversations.info": TIER_3,
    "conversations.list": TIER_2,
    "conversations.members": TIER_4,
    "conversations.open": TIER_3,
    "conversations.replies": TIER_3,
    "files.completeUploadExternal": TIER_4,
    "files.getUploadURLExternal": TIER_4,
    "files.info": TIER_4,
    "reactions.add": TIER_3,
    "reactions.get": TIER_3,
    "reactions.remove": TIER_2,
    "team.info": TIER_3,
    "usergroups.users.list": TIER_2,
    "users.conversations": TIER_3,
    "users.info": TIER_4,
}
CHANNEL_BURST = 5
CHANNEL_WINDOW = 5.0


class RateLimits:
    def __init__(self, scale: float | None) -> None:
        self.scale = scale
        self._seen: dict[str, deque[float]] = defaultdict(deque)
        self._until: dict[str, float] = {}

    def block(self, method: str, retry_after: float) -> None:
        """From now on this method is limited for so long, whatever the scale."""
        self._until[method] = time.monotonic() + retry_after

    def too_early(self, method: str, channel: str | None) -> float:
        """How many seconds before its Retry-After this call comes; 0 when it is in time."""
        keys = [method, f"{method} {channel}"]
        return max(0.0, *(self._until.get(key, 0.0) - time.monotonic() for key in keys))

    def retry_after(self, method: str, channel: str | None) -> int | None:
        """Count this call; whole seconds to wait if it is one too many."""
        if self.scale is None or method not in PER_MINUTE:
            return None
        windows = [(method, PER_MINUTE[method], MINUTE / self.scale)]
        if method == "chat.postMessage" and channel is not None:
            windows.append((f"{method} {channel}", CHANNEL_BURST, CHANNEL_WINDOW / self.scale))
        now = time.monotonic()
        for key, most, window in windows:
            seen = self._seen[key]
            while seen and seen[0] <= now - window:
                seen.popleft()
            if len(seen) >= most:
                wait = max(1, math.ceil(seen[0] + window - now))
                self._until[key] = now + min(wait, seen[0] + window - now)
                return wait
        for key, _, _ in windows:
            self._seen[key].append(now)
        return None

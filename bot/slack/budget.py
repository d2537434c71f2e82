"""One rate budget per method (for posts also per channel) of one workspace, shared by all that we call.

Rule 1: within any minute no more calls of a method than its tier allows.
Rule 2: a quarter of it is kept for what is urgent (a release, a stop); progress is spread over the rest.
Rule 3: after a refusal with `Retry-After` the whole method rests until then, whoever asks.
Rule 4: whoever is most urgent goes first, and among equals whoever asked first.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from bot.slack.methods import METHODS

Clock = Callable[[], float]

MINUTE = 60.0
URGENT_SHARE = 0.25
PROGRESS_BURST = 4
# "One message per second per channel", short bursts may go over: docs.slack.dev/apis/web-api/rate-limits
CHANNEL_INTERVAL_S = 1.3
CHANNEL_BURST = 2
MOST_CHANNELS = 2_000
SLACK_OF_TIMERS_S = 0.002


class Priority(IntEnum):
    """Who goes first."""

    URGENT = 0
    POST = 1
    PROGRESS = 2


class Pace:
    """At most `burst` at once, and then one every `interval_s`."""

    def __init__(self, interval_s: float, burst: int) -> None:
        self._interval, self._slack = interval_s, interval_s * (burst - 1)
        self._next = float("-inf")

    def ready_at(self) -> float:
        return self._next - self._slack

    def take(self, now: float) -> None:
        self._next = max(self._next, now) + self._interval


@dataclass(order=True, slots=True)
class Waiter:
    """Somebody who waits for a turn."""

    priority: Priority
    order: int
    turn: asyncio.Future[None] = field(compare=False)


class Lane:
    """The budget of one method."""

    def __init__(
        self, most: int, *, window_s: float = MINUTE, pace: Pace | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._clock, self._window, self._pace = clock, window_s, pace
        unhurried = max(1, int(most * (1 - URGENT_SHARE)))
        self._most = {Priority.URGENT: most, Priority.POST: unhurried, Priority.PROGRESS: unhurried}
        self._taken: deque[float] = deque(maxlen=most)
        spread = max(1, unhurried - PROGRESS_BURST)
        self._progress = Pace(window_s / spread, min(PROGRESS_BURST, unhurried))
        self._rests_until = float("-inf")
        self._waiting: list[Waiter] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether forgetting this lane would lose nothing."""
        quiet = not self._taken or self._taken[-1] + self._window < self._clock()
        return quiet and not self._waiting and self._rests_until < self._clock()

    async def turn(self, priority: Priority) -> None:
        """Wait for one call's share."""
        waiter = Waiter(priority, next(self._order), asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiting, waiter)
        self._let_go()
        await waiter.turn

    def rest(self, seconds: float) -> None:
        """No call before so many seconds have passed."""
        self._rests_until = max(self._rests_until, self._clock() + seconds)

    def rests_for(self) -> float:
        """How many seconds are left of that."""
        return max(0.0, self._rests_until - self._clock())

    def _let_go(self) -> None:
        """Let everybody go whose time has come, and come back when the next one's has."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            first = self._waiting[0]
            if first.turn.done():  # cancelled while it waited
                heapq.heappop(self._waiting)
                continue
            now = self._clock()
            ready = self._ready_at(first.priority)
            if ready > now:
                delay = ready - now + SLACK_OF_TIMERS_S
                self._timer = asyncio.get_running_loop().call_later(delay, self._let_go)
                return
            heapq.heappop(self._waiting)
            self._take(first.priority, now)
            first.turn.set_result(None)

    def _ready_at(self, priority: Priority) -> float:
        """The more urgent, the earlier: so if the first in line cannot go, nobody can."""
        times = [self._rests_until]
        most = self._most[priority]
        if len(self._taken) >= most:
            times.append(self._taken[-most] + self._window)
        if self._pace is not None:
            times.append(self._pace.ready_at())
        if priority is Priority.PROGRESS:
            times.append(self._progress.ready_at())
        return max(times)

    def _take(self, priority: Priority, now: float) -> None:
        self._taken.append(now)
        if self._pace is not None:
            self._pace.take(now)
        if priority is Priority.PROGRESS:
            self._progress.take(now)


class Budget:
    """All budgets of one workspace. `factor` stretches them where Slack has granted more than documented."""

    def __init__(self, clock: Clock = time.monotonic, *, factor: float = 1.0) -> None:
        self._clock, self._factor = clock, factor
        self._lanes = {name: Lane(self._most(name), clock=clock) for name in METHODS}
        self._channels: dict[tuple[str, str], Lane] = {}

    async def turn(self, method: str, priority: Priority, channel: str | None = None) -> None:
        """Wait until this method may be called; the method's own rest is looked at last."""
        if channel is not None and METHODS[method].per_channel:
            await self._channel(method, channel).turn(priority)
        await self._lanes[method].turn(priority)

    def rest(self, method: str, seconds: float) -> None:
        """Slack said when to come back."""
        self._lanes[method].rest(seconds)

    def rests_for(self, method: str) -> float:
        """How long this method must not be called, even by whoever had its turn before Slack spoke."""
        return self._lanes[method].rests_for()

    def _channel(self, method: str, channel: str) -> Lane:
        lane = self._channels.get((method, channel))
        if lane is None:
            if len(self._channels) >= MOST_CHANNELS:
                self._channels = {key: lane for key, lane in self._channels.items() if not lane.idle}
            pace = Pace(CHANNEL_INTERVAL_S / self._factor, CHANNEL_BURST)
            lane = self._channels[method, channel] = Lane(self._most(method), pace=pace, clock=self._clock)
        return lane

    def _most(self, method: str) -> int:
        return max(1, int(METHODS[method].per_minute * self._factor))

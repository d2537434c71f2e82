"""One rate budget per method (for posts also per channel) of one workspace, shared by all that we call.

Rule 1: within any minute no more calls of a method than its tier allows.
Rule 2: a quarter of it is kept for what is urgent (a release, a stop); progress is spread over the rest.
Rule 3: after a refusal with `Retry-After` the whole method rests until then, whoever asks.
Rule 4: whoever is most urgent goes first, and among equals whoever asked first.

Where processes share a workspace, each keeps these rules for itself and decides who is next here; whether
the workspace may take one more call now is then asked of the shared pace, once for each call. While nobody
answers there, each decides alone.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import structlog

from bot.slack.methods import METHODS

log = structlog.get_logger()

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


Spacing = tuple[str, float, int]
"""Under this name at most so many at once, and then one every so many seconds: (name, interval_s, burst)."""


class SharedPace(Protocol):
    """What all processes together may call."""

    async def take(
        self, lane: str, most: int, window_s: float, spacings: Sequence[Spacing] = ()
    ) -> list[float] | None:
        """Take one call's share, or nothing of it; answers at once, and raises nothing.

        Returns the seconds to wait, for the lane and for each spacing: all zero means that it is taken. None:
        nobody answers, decide alone.
        """
        ...

    def rest(self, lane: str, seconds: float) -> None:
        """Let nobody call for so long. Does not wait."""
        ...

    async def close(self) -> None:
        """End what is under way."""
        ...


class Pace:
    """At most `burst` at once, and then one every `interval_s`."""

    def __init__(self, interval_s: float, burst: int) -> None:
        self.interval_s, self.burst = interval_s, burst
        self._next = float("-inf")

    def ready_at(self) -> float:
        return self._next - self.interval_s * (self.burst - 1)

    def take(self, now: float) -> None:
        self._next = max(self._next, now) + self.interval_s

    def give_back(self) -> None:
        self._next -= self.interval_s

    def named(self, name: str) -> Spacing:
        """The same rule, for all processes together."""
        return name, self.interval_s, self.burst


@dataclass(order=True, slots=True)
class Waiter:
    """Somebody who waits for a turn; `spacing` is one that only the shared pace keeps."""

    priority: Priority
    order: int
    turn: asyncio.Future[float] = field(compare=False)
    spacing: Spacing | None = field(compare=False, default=None)

    def answer(self, wait_s: float) -> None:
        """Let it go, unless it has given up."""
        if not self.turn.done():
            self.turn.set_result(wait_s)


class Lane:
    """The budget of one method."""

    def __init__(
        self,
        most: int,
        *,
        window_s: float = MINUTE,
        pace: Pace | None = None,
        clock: Clock = time.monotonic,
        name: str = "",
        shared: SharedPace | None = None,
    ) -> None:
        self._clock, self._window, self._pace = clock, window_s, pace
        self._name, self._shared = name, shared
        unhurried = max(1, int(most * (1 - URGENT_SHARE)))
        self._most = {Priority.URGENT: most, Priority.POST: unhurried, Priority.PROGRESS: unhurried}
        self._taken: deque[float] = deque(maxlen=most)
        spread = max(1, unhurried - PROGRESS_BURST)
        self._progress = Pace(window_s / spread, min(PROGRESS_BURST, unhurried))
        self._rests_until = float("-inf")
        self._told = dict.fromkeys(Priority, float("-inf"))  # when to ask the shared pace again
        self._spaced: dict[str, float] = {}  # the same for each spacing
        self._asking: asyncio.Task[None] | None = None
        self._waiting: list[Waiter] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether forgetting this lane would lose nothing."""
        quiet = not self._taken or self._taken[-1] + self._window < self._clock()
        return quiet and not self._waiting and self._rests_until < self._clock()

    async def turn(
        self, priority: Priority, spacing: Spacing | None = None, order: int | None = None
    ) -> float:
        """Wait for one call's share. Returns 0; or, with nothing taken, how long to wait for the spacing."""
        order = next(self._order) if order is None else order
        waiter = Waiter(priority, order, asyncio.get_running_loop().create_future(), spacing)
        heapq.heappush(self._waiting, waiter)
        self._let_go()
        return await waiter.turn

    def give_back(self) -> None:
        """The newest share was not used."""
        self._taken.pop()
        if self._pace is not None:
            self._pace.give_back()

    def rest(self, seconds: float) -> None:
        """No call before so many seconds have passed."""
        self._rests_until = max(self._rests_until, self._clock() + seconds)

    def rests_for(self) -> float:
        """How many seconds are left of that."""
        return max(0.0, self._rests_until - self._clock())

    async def close(self) -> None:
        """End what is under way; whoever waits still, waits in vain."""
        self._cancel_timer()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _let_go(self) -> None:
        """Let everybody go whose time has come, and come back when the next one's has."""
        self._cancel_timer()
        while self._waiting and self._asking is None:
            first = self._waiting[0]
            if first.turn.done():  # has gone, or was cancelled while it waited
                heapq.heappop(self._waiting)
                continue
            now = self._clock()
            ready = self._ready_at(first.priority)
            if first.spacing is not None and (left := self._spaced.get(first.spacing[0], now) - now) > 0:
                first.answer(left)  # else it could overtake who was told so before
            elif ready > now:
                delay = ready - now + SLACK_OF_TIMERS_S
                self._timer = asyncio.get_running_loop().call_later(delay, self._let_go)
                return
            elif self._shared is not None:
                self._asking = asyncio.create_task(self._ask(self._shared, first))
            else:
                self._grant(first)

    async def _ask(self, shared: SharedPace, first: Waiter) -> None:
        """Ask for one call's share of all processes together, for whoever is first here."""
        hurried = first.priority is not Priority.PROGRESS
        spacings = [] if hurried else [self._progress.named("progress")]
        own = [] if first.spacing is None else [first.spacing]
        try:
            waits = await shared.take(self._name, self._most[first.priority], self._window, [*spacings, *own])
        except Exception:  # whatever is wrong there must not hold up the calls
            log.exception("shared_pace_failed", lane=self._name)
            waits = None
        self._asking = None
        lane_wait = 0.0 if waits is None else max(waits[: 1 + len(spacings)])
        if lane_wait > 0:
            self._told[first.priority] = self._clock() + lane_wait
        elif waits is not None and first.spacing is not None and waits[-1] > 0:
            now = self._clock()
            self._spaced = {name: until for name, until in self._spaced.items() if until > now}
            self._spaced[first.spacing[0]] = now + waits[-1]
            first.answer(waits[-1])
        else:
            self._grant(first)
        self._let_go()

    def _ready_at(self, priority: Priority) -> float:
        """The more urgent, the earlier: so if the first in line cannot go, nobody can."""
        times = [self._rests_until, *(self._told[other] for other in Priority if other <= priority)]
        most = self._most[priority]
        if len(self._taken) >= most:
            times.append(self._taken[-most] + self._window)
        if self._pace is not None:
            times.append(self._pace.ready_at())
        if priority is Priority.PROGRESS:
            times.append(self._progress.ready_at())
        return max(times)

    def _grant(self, waiter: Waiter) -> None:
        now = self._clock()
        self._taken.append(now)
        if self._pace is not None:
            self._pace.take(now)
        if waiter.priority is Priority.PROGRESS:
            self._progress.take(now)
        waiter.answer(0.0)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Budget:
    """All budgets of one workspace. `factor` stretches them where Slack has granted more than documented."""

    def __init__(
        self,
        clock: Clock = time.monotonic,
        *,
        factor: float = 1.0,
        shared: SharedPace | None = None,
        window_s: float = MINUTE,
    ) -> None:
        self._clock, self._factor, self._shared, self._window = clock, factor, shared, window_s
        self._lanes = {
            name: Lane(self._most(name), window_s=window_s, clock=clock, name=name, shared=shared)
            for name in METHODS
        }
        self._channels: dict[tuple[str, str], Lane] = {}
        self._order = itertools.count()
        self._channel_pace = Pace(CHANNEL_INTERVAL_S / factor, CHANNEL_BURST)

    async def turn(self, method: str, priority: Priority, channel: str | None = None) -> None:
        """Wait until this method may be called; the method's own rest is looked at last."""
        lane = self._lanes[method]
        if channel is None or not METHODS[method].per_channel:
            await lane.turn(priority)
            return
        here, order = self._channel(method, channel), next(self._order)
        await here.turn(priority, order=order)
        while (wait := await lane.turn(priority, self._channel_pace.named(channel))) > 0:
            here.give_back()  # others wrote there
            here.rest(wait)
            await here.turn(priority, order=order)

    def rest(self, method: str, seconds: float) -> None:
        """Slack said when to come back."""
        self._lanes[method].rest(seconds)
        if self._shared is not None:
            self._shared.rest(method, seconds)

    def rests_for(self, method: str) -> float:
        """How long this method must not be called, even by whoever had its turn before Slack spoke."""
        return self._lanes[method].rests_for()

    async def close(self) -> None:
        """Let go of what is shared."""
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))
        if self._shared is not None:
            await self._shared.close()

    def _channel(self, method: str, channel: str) -> Lane:
        lane = self._channels.get((method, channel))
        if lane is None:
            if len(self._channels) >= MOST_CHANNELS:
                self._channels = {key: lane for key, lane in self._channels.items() if not lane.idle}
            pace = Pace(CHANNEL_INTERVAL_S / self._factor, CHANNEL_BURST)
            lane = self._channels[method, channel] = Lane(
                self._most(method), window_s=self._window, pace=pace, clock=self._clock
            )
        return lane

    def _most(self, method: str) -> int:
        return max(1, int(METHODS[method].per_minute * self._factor))

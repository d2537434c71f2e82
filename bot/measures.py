"""What is measured: instruments for Prometheus, and one small verb for each thing that happens.

A service has its own registry, because several may live in one process. Every series with a label exists from
the start with zero: what has never happened is 0, not absent. No label holds anything that people or time
make more of (no ids, no names).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from core.reasons import REASONS, Reason
from core.signals import Signal

LOOP_EVERY_S = 0.25

WAITS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
LAGS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
LOOP_LAGS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

HURRYING = (Signal.STOP, Signal.STEER, Signal.DRAIN)
"""The signals that come while calls are open; the others are raised by a turn's own calls."""

ASKED = {Reason.STOPPED: Signal.STOP, Reason.STEERED: Signal.STEER}
"""The endings that somebody asked for, whose latency people feel."""

OTHER_POST = "note"
GIVEN_UP = ("card", "answer", "chart", "private", "undelivered", "receipt", OTHER_POST)
"""What may be given up; every kind of post that is not named here counts as a note."""

SLACK_OUTCOMES = ("ok", "rate_limited", "unavailable", "unknown", "refused", "rejected")

disable_created_metrics()  # type: ignore[no-untyped-call]  # else each counter and histogram has a second series with its birthday


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the records say of all processes together."""

    outbox_age_s: float
    oldest_unsettled_turn_s: float
    unreleased_cards: int


class Measures:
    """The instruments of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._fleet = _FleetGauges()
        self._make_turn_instruments()
        self._make_platform_instruments()
        self._make_process_instruments()
        self.registry.register(self._fleet)

    # --- turns ----------------------------------------------------------------------------------------------

    def _make_turn_instruments(self) -> None:
        self._settled = self._counter(
            "watchkeeper_turns_settled_total",
            "Turns whose settle record this process wrote, by reason.",
            reason=[str(reason) for reason in REASONS],
        )
        self._safe_point_wait = self._histogram(
            "watchkeeper_safe_point_wait_seconds",
            "Seconds from the moment that open calls are hurried for a signal until none is open, by signal.",
            WAITS_S,
            signal=[str(signal) for signal in HURRYING],
        )
        self._steer_cut = self._histogram(
            "watchkeeper_steer_cut_seconds",
            "Seconds from the decision of a steer or stop until the turn that it cut is settled, by signal.",
            WAITS_S,
            signal=[str(signal) for signal in ASKED.values()],
        )
        self._steer_read = self._histogram(
            "watchkeeper_steer_read_seconds",
            "Seconds from the decision of a steer until the first request to the model that holds it.",
            WAITS_S,
        )
        self._lease_losses = self._counter(
            "watchkeeper_lease_losses_total",
            "Leases that were lost while this process worked under them.",
        )
        self._running = self._gauge("watchkeeper_turns_running", "Turns that run in this process now.")

    def settled(self, reason: Reason) -> None:
        """A settle record was written here."""
        self._settled.labels(reason).inc()

    def reached_safe_point(self, signal: Signal, waited_s: float) -> None:
        """A batch that was hurried for a signal has no open call any more."""
        if signal in HURRYING:
            self._safe_point_wait.labels(signal).observe(waited_s)

    def cut(self, reason: Reason, waited_s: float) -> None:
        """A turn that somebody steered or stopped is settled, so long after that was decided."""
        if reason in ASKED:
            self._steer_cut.labels(ASKED[reason]).observe(waited_s)

    def steer_read(self, waited_s: float) -> None:
        """The model was asked with a steer in what it is shown, so long after that was decided."""
        self._steer_read.observe(waited_s)

    def lease_lost(self) -> None:
        """A lease was gone when it should be renewed, or at a write."""
        self._lease_losses.inc()

    def running(self, turns: int) -> None:
        """So many turns run here now."""
        self._running.set(turns)

    # --- the platform ---------------------------------------------------------------------------------------

    def _make_platform_instruments(self) -> None:
        self._card_lag = self._histogram(
            "watchkeeper_card_lag_seconds",
            "Seconds from a turn's settle until the platform took its released card.",
            LAGS_S,
        )
        self._given_up = self._counter(
            "watchkeeper_given_up_total",
            "What the platform will never take and is not tried any more, by kind.",
            kind=GIVEN_UP,
        )
        self._slack_calls = self._counter(
            "watchkeeper_slack_calls_total",
            "Calls of Slack's Web API by method and outcome; rate_limited is HTTP 429, unknown a lost reply.",
            method=(),
            outcome=(),
        )

    def card_released(self, lag_s: float) -> None:
        """The platform took a released card, so long after its turn was settled."""
        self._card_lag.observe(lag_s)

    def given_up(self, kind: str) -> None:
        """A card, receipt or post is not tried any more."""
        self._given_up.labels(kind if kind in GIVEN_UP else OTHER_POST).inc()

    def expect_slack_calls(self, methods: Iterable[str]) -> None:
        """Slack is the platform: these methods will be called."""
        for method in methods:
            for outcome in SLACK_OUTCOMES:
                self._slack_calls.labels(method, outcome)

    def slack_called(self, method: str, outcome: str) -> None:
        """A call of Slack's Web API ended so."""
        self._slack_calls.labels(method, outcome).inc()

    # --- this process and the records -----------------------------------------------------------------------

    def _make_process_instruments(self) -> None:
        self._ready = self._gauge(
            "watchkeeper_ready", "1 when this process can work, as /readyz says, else 0."
        )
        self._loop_lag = self._histogram(
            "watchkeeper_loop_lag_seconds",
            "Seconds by which a sleep of 0.25 s ended late: how long the event loop was held up.",
            LOOP_LAGS_S,
        )
        self._database_retries = self._counter(
            "watchkeeper_database_retries_total",
            "Reads and transactions that were tried again because the database was away, busy or deadlocked.",
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def ready(self, ready: bool) -> None:
        """Whether this process can work now."""
        self._ready.set(ready)

    def database_retried(self) -> None:
        """A read or a transaction is tried again."""
        self._database_retries.inc()

    def fleet_is(self, fleet: Fleet | None) -> None:
        """What the records say now; None when the database does not answer."""
        self._fleet.known = fleet

    async def watch_loop(self) -> None:
        """Measure for ever how late a short sleep ends."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOP_EVERY_S
            await asyncio.sleep(LOOP_EVERY_S)
            self._loop_lag.observe(max(0.0, loop.time() - due))

    # --- making ---------------------------------------------------------------------------------------------

    def _counter(self, name: str, help_text: str, **labels: Iterable[str]) -> Counter:
        counter = Counter(name, help_text, tuple(labels), registry=self.registry)
        _begin(counter, labels)
        return counter

    def _histogram(
        self, name: str, help_text: str, buckets: tuple[float, ...], **labels: Iterable[str]
    ) -> Histogram:
        histogram = Histogram(name, help_text, tuple(labels), registry=self.registry, buckets=buckets)
        _begin(histogram, labels)
        return histogram

    def _gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(name, help_text, registry=self.registry)


def _begin(instrument: Counter | Histogram, labels: dict[str, Iterable[str]]) -> None:
    """Every series of the one label with zero."""
    if len(labels) == 1:
        for value in next(iter(labels.values())):
            instrument.labels(value)


class _FleetGauges(Collector):
    """Gauges of the records: absent while nobody knows them, because an old number would be believed."""

    def __init__(self) -> None:
        self.known: Fleet | None = None

    def collect(self) -> Iterator[Family]:
        """The gauges as they were last read."""
        known = self.known
        yield GaugeMetricFamily(
            "watchkeeper_database_up",
            "1 when the database answered in time when the gauges of the fleet were last read, else 0.",
            value=known is not None,
        )
        if known is None:
            return
        yield GaugeMetricFamily(
            "watchkeeper_outbox_age_seconds",
            "Age in seconds of the oldest message that the platform has not taken and that was not given up; "
            "0 without one. Of the whole fleet.",
            value=known.outbox_age_s,
        )
        yield GaugeMetricFamily(
            "watchkeeper_oldest_unsettled_turn_seconds",
            "Seconds since the start of the oldest turn without a settle record; 0 without one. "
            "Of the whole fleet.",
            value=known.oldest_unsettled_turn_s,
        )
        yield GaugeMetricFamily(
            "watchkeeper_unreleased_cards",
            "Cards that still show as live though their turn has ended, given-up ones left out. "
            "Of the whole fleet.",
            value=known.unreleased_cards,
        )

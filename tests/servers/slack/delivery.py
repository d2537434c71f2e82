"""Events and interactions on their way to the app: attempts, acknowledgements, redelivery.

Events are tried at once and then after each of `retry_delays`, whether or not the app can be
reached; interactions are tried once. Attempts start in the order of emission.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tests.servers.slack.bell import Bell
from tests.servers.slack.shapes import Json


class Form(Enum):
    EVENT = "events_api"
    INTERACTION = "interactive"


@dataclass(frozen=True)
class Attempt:
    """One try; `failed` is Slack's retry reason, None when it was acknowledged."""

    time: float
    failed: str | None
    final: bool = False
    answer: object = None


@dataclass(eq=False)
class Delivery:
    form: Form
    body: Json
    attempts: list[Attempt] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def acked(self) -> bool:
        return any(attempt.failed is None for attempt in self.attempts)

    @property
    def event(self) -> Json:
        event: Json = self.body.get("event", {})
        return event

    @property
    def type(self) -> str:
        """`app_mention`, `message`, `message/message_changed`, `block_actions`, …"""
        kind = str(self.event.get("type") or self.body.get("type"))
        return f"{kind}/{self.event['subtype']}" if "subtype" in self.event else kind


class Transport(Protocol):
    """Sends once and waits for the acknowledgement; never raises for the app's failures."""

    async def send(self, delivery: Delivery, number: int, reason: str | None) -> Attempt: ...


Picked = Callable[[Delivery], bool]


class Deliverer:
    def __init__(self, transport: Callable[[], Transport], bell: Bell, retry_delays: Sequence[float]) -> None:
        self.retry_delays = tuple(retry_delays)
        self.deliveries: list[Delivery] = []
        self._transport = transport
        self._bell = bell
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[Delivery] | None = None
        self._copies: list[tuple[int, Picked | None]] = []

    def emit(self, form: Form, body: Json) -> Delivery:
        delivery = Delivery(form, body)
        self.deliveries.append(delivery)
        if self._held is not None:
            self._held.append(delivery)
        else:
            self._start(delivery)
        return delivery

    def copy_next(self, times: int, when: Picked | None) -> None:
        self._copies.append((times, when))

    def hold(self) -> None:
        if self._held is None:
            self._held = []

    def release(self, *, reverse: bool = False) -> None:
        held, self._held = self._held or [], None
        for delivery in reversed(held) if reverse else held:
            self._start(delivery)

    @property
    def held(self) -> list[Delivery]:
        return list(self._held or [])

    async def settled(self) -> None:
        """Wait until nothing is on its way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, delivery: Delivery) -> None:
        for _ in range(self._times(delivery)):
            task = asyncio.get_running_loop().create_task(self._deliver(delivery))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _times(self, delivery: Delivery) -> int:
        for rule in self._copies:
            times, when = rule
            if when is None or when(delivery):
                self._copies.remove(rule)
                return times
        return 1

    async def _deliver(self, delivery: Delivery) -> None:
        waits = (0.0, *self.retry_delays) if delivery.form is Form.EVENT else (0.0,)
        reason: str | None = None
        for number, wait in enumerate(waits):
            if number:
                await asyncio.sleep(wait)
            attempt = await self._transport().send(delivery, number, reason)
            delivery.attempts.append(attempt)
            self._bell.ring()
            if attempt.failed is None or attempt.final:
                break
            reason = attempt.failed
        delivery.done.set()
        self._bell.ring()


def new_id() -> str:
    return str(uuid.uuid4())


def now() -> float:
    return time.monotonic()

"""The request that a turn has under way, or the wait before its next try. At most one at a time.

Each has a number, so that what a broken-off one still says is told apart from the current one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bot.flow.bells import Topic
from bot.ports import Generation
from core import repair
from core.events import Input, ModelAnswered, ModelFailed, Waited
from core.generation import Generated, GenerationFailed, ModelRequest
from core.history import Block, Call, Json, Message, Text
from core.usage import Usage
from storage import steps
from storage.steps import Booking
from storage.turns import StartedTurn

if TYPE_CHECKING:
    from bot.flow.turn_loop import Surroundings

Post = Callable[[Input | Exception, int | None], None]


class Generating:
    """Asks the model, books what every request cost, and posts what came of it."""

    def __init__(self, around: Surroundings, started: StartedTurn, post: Post) -> None:
        self._around = around
        self._started = started
        self._post = post
        self._specs = around.tools.specs()
        self._task: asyncio.Task[None] | None = None
        self._generation: Generation | None = None
        self._first_try_at: float | None = None
        self._said = ""
        self._said_at = 0.0
        self.number = 0
        self.bookings: list[Booking] = []

    def take_bookings(self) -> list[Booking]:
        """The requests that are not booked yet; whoever takes them books them in its transaction."""
        taken, self.bookings = self.bookings, []
        return taken

    def ask(self, messages: Sequence[Message]) -> None:
        """Send one request."""
        request = ModelRequest(self._around.instructions, self._specs, repair.repaired(tuple(messages)))
        generation = self._generation = self._around.model.open(request)
        self._said = ""  # whatever the card said last, a wait perhaps, is over
        if self._first_try_at is None:
            self._first_try_at = _monotonic()
        self._begin(self._generate(generation, self.number + 1))

    def wait(self, seconds: float) -> None:
        """Wait before the next try."""
        self._begin(self._sleep(seconds, self.number + 1))

    async def break_off(self) -> None:
        """Break off what is under way; returns when its connection is closed."""
        self.number += 1
        task, self._task = self._task, None
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.wait([task])
        if self._generation is not None:
            self._book(self._generation.usage)
            self._generation = None

    async def say_what_it_does(self) -> None:
        """Put a change of what the model does on the card, not more often than cards change."""
        doing = self._generation.doing if self._generation is not None else ""
        if (
            not doing
            or doing == self._said
            or _monotonic() - self._said_at < self._around.limits.card_interval_s
        ):
            return
        self._said, self._said_at = doing, _monotonic()
        await self._around.database.write(steps.say, self._started.fence, doing)
        self._around.bells.ring(Topic.CARDS)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.number += 1
        self._task = asyncio.create_task(work, name=f"generation of {self._started.fence.turn_id}")

    async def _generate(self, generation: Generation, number: int) -> None:
        outcome = await generation.run()
        self._generation = None
        match outcome:
            case Generated():
                self._first_try_at = None
                self.bookings.append(Booking(outcome.model, outcome.usage))
                message = redacted(outcome.message, self._around.redact)
                self._post(ModelAnswered(replace(outcome, message=message)), number)
            case GenerationFailed():
                self._book(outcome.usage)
                waited = _monotonic() - (self._first_try_at or _monotonic())
                self._post(ModelFailed(outcome, waited, random.random()), number)

    async def _sleep(self, seconds: float, number: int) -> None:
        await asyncio.sleep(seconds)
        self._post(Waited(), number)

    def _book(self, usage: Usage) -> None:
        if usage.input_tokens or usage.output_tokens:
            self.bookings.append(Booking(self._around.model.name, usage))


def redacted(message: Message, redact: Callable[[str], str]) -> Message:
    """The message without secrets in its words and in its calls' inputs; opaque blocks stay whole."""

    def clean(value: Json) -> Json:
        match value:
            case str():
                return redact(value)
            case dict():
                return {key: clean(item) for key, item in value.items()}
            case list():
                return [clean(item) for item in value]
            case _:
                return value

    def clean_block(block: Block) -> Block:
        match block:
            case Text(text):
                return Text(redact(text))
            case Call():
                return replace(block, input=clean(dict(block.input)))
            case _:
                return block

    return replace(message, blocks=tuple(clean_block(block) for block in message.blocks))


def _monotonic() -> float:
    return asyncio.get_running_loop().time()

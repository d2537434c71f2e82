"""Sending an answer: event by event, through gates and pauses, until it ends or either side breaks it off."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.pause import Pause, Stepper
from tests.servers.anthropic.stream import Action, Closed, Event, HalfEvent, Silent

OnEvent = Callable[[int, int, str], Awaitable[None]]


class Playing:
    def __init__(
        self, http: web.Request, request: ModelRequest, stepper: Stepper, on_event: OnEvent | None
    ) -> None:
        self.http = http
        self.request = request
        self.stepper = stepper
        self.on_event = on_event
        self.sent: list[Event] = []

    async def stream(self, actions: list[Action], delay: float) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        response = web.StreamResponse(headers={**headers, "request-id": self.request.request_id})
        await response.prepare(self.http)
        for action in actions:
            match action:
                case Gate():
                    await action.hold()
                case Event():
                    await self.send(response, action, delay)
                case HalfEvent():
                    await self.write(response, action.wire)
                case Silent():
                    await silence()
                case Closed():
                    self.hang_up()
                    return response
        await response.write_eof()
        self.request.finished_ns = time.monotonic_ns()
        return response

    async def send(self, response: web.StreamResponse, event: Event, delay: float) -> None:
        pause = Pause(self.request.number, self.request.events_sent, event.name)
        await self.before(pause)
        if delay:
            await asyncio.sleep(delay)
        await self.write(response, event.wire)
        self.request.event_names.append(event.name)
        self.sent.append(event)
        pause.sent.set()

    async def before(self, pause: Pause) -> None:
        await self.stepper.pause(pause)
        if self.on_event is not None:
            await self.on_event(pause.request, pause.event, pause.name)

    async def write(self, response: web.StreamResponse, data: bytes) -> None:
        await response.write(data)
        self.request.bytes_sent += len(data)

    def hang_up(self) -> None:
        """What was written still goes out, then the connection closes without the end of the chunked body."""
        if self.http.transport is not None:
            self.http.transport.close()


async def silence() -> None:
    """Until the client leaves or the server closes: both cancel the handler."""
    await asyncio.Event().wait()

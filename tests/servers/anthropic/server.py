"""The server: `async with AnthropicServer() as model:` and point the real SDK at `model.url`."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.servers.anthropic import answering, door, ledger
from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.cache import PromptCache, tokens_of
from tests.servers.anthropic.context import Context
from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.ids import Ids
from tests.servers.anthropic.memory import Memory
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.models import CATALOGUE, card_of
from tests.servers.anthropic.pause import Pause, Stepper
from tests.servers.anthropic.playing import OnEvent, Playing, silence
from tests.servers.anthropic.reply import Hang, HttpError, Reply, Step
from tests.servers.anthropic.rules.table import judge
from tests.servers.anthropic.script import Answerer, Script, Scripted, step_of
from tests.servers.anthropic.stream import actions_of
from tests.servers.anthropic.usage import Usage


class AnthropicServer:
    def __init__(self, *, context: Context | None = None, api_key: str | None = None) -> None:
        self.context = context or Context()
        self.api_key = api_key
        """The only key that is taken; None takes any."""
        self.requests: list[ModelRequest] = []
        """Every POST /v1/messages, in order of arrival, never shortened."""
        self.other_requests: list[ModelRequest] = []
        self.ledger: list[ledger.Entry] = []
        self.cache = PromptCache()
        self.memory = Memory()
        self.on_event: OnEvent | None = None
        self.url = ""
        self._script = Script()
        self._stepper = Stepper()
        self._ids = Ids()
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._closing = False

    # Running it

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=0)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{model}", self._model)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        host, real_port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{real_port}"

    async def close(self) -> None:
        self._closing = True
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # Scripting it

    def script(self, *steps: Scripted) -> None:
        """Add these steps for the accepted requests to come, first in, first out."""
        self._script.steps.extend(step_of(step) for step in steps)

    def reply_with(self, answerer: Answerer) -> None:
        """Ask this function whenever no step is left."""
        self._script.answerer = answerer

    def reply_always(self, scripted: Scripted | None) -> None:
        """Say this when neither a step nor a function is there; None brings the clear HTTP 500 back."""
        self._script.default = scripted

    def fail_next(self, count: int, step: HttpError | Hang) -> None:
        """The next so many requests fail like this, whatever they are, and use up no step."""
        self._script.failures.extend([step] * count)

    @property
    def steps_left(self) -> int:
        return len(self._script.steps)

    def gate(self, name: str) -> Gate:
        return Gate(name)

    def hold_every_event(self) -> None:
        """From now on each event waits for `await model.step()`."""
        self._stepper.holding = True

    def let_events_go(self) -> None:
        self._stepper.let_go()

    async def step(self, request: int | None = None, *, timeout: float = 5.0) -> Pause:
        """Send one event, of this request or of the stream that waits longest; returns once it is sent."""
        return await self._stepper.step(request, timeout=timeout)

    async def next_event(self, request: int | None = None, *, timeout: float = 5.0) -> Pause:
        """The event that the next step would send; it stays held."""
        return await self._stepper.next_pause(request, timeout=timeout)

    # Looking at it

    @property
    def last_request(self) -> ModelRequest:
        assert self.requests, "the model has not been asked yet"
        return self.requests[-1]

    @property
    def refused(self) -> list[ModelRequest]:
        """Those that broke a rule. Most tests end with `assert not model.refused, model.dump()`."""
        return [request for request in [*self.requests, *self.other_requests] if request.verdict == "refused"]

    @property
    def spent(self) -> Usage:
        return ledger.total(self.ledger)

    async def wait_for(
        self, predicate: Callable[[ModelRequest], object], timeout: float = 5.0
    ) -> ModelRequest:
        """The first request of which this is, or becomes, true."""

        def found() -> ModelRequest | None:
            return next((request for request in self.requests if predicate(request)), None)

        await self._wait(lambda: found() is not None, timeout, "no request fits")
        request = found()
        assert request is not None
        return request

    async def wait_for_requests(self, count: int, timeout: float = 5.0) -> list[ModelRequest]:
        await self._wait(lambda: len(self.requests) >= count, timeout, f"fewer than {count} requests came")
        return self.requests[:count]

    def dump(self) -> str:
        return "\n".join(request.dump() for request in self.requests) or "no requests"

    async def _wait(self, holds: Callable[[], bool], timeout: float, complaint: str) -> None:
        async with self._changed:
            try:
                async with asyncio.timeout(timeout):
                    await self._changed.wait_for(holds)
            except TimeoutError:
                raise AssertionError(f"{complaint} within {timeout} s\n{self.dump()}") from None

    async def _note_change(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # Answering

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        request = self._recorded(http, self.requests)
        try:
            return await self._answer(http, request)
        except (asyncio.CancelledError, ConnectionError):
            if not self._closing:
                request.closed_at = time.monotonic_ns()
            raise
        finally:
            await self._note_change()

    async def _answer(self, http: web.Request, request: ModelRequest) -> web.StreamResponse:
        if refusal := await self._at_the_door(http, request):
            return refusal
        if failure := self._script.next_failure():
            return await self._fail(request, failure)
        ask = self._ask(request)
        if faults := judge(ask):
            return answering.refused(request, faults)
        request.verdict = "accepted"
        step = await self._script.next_step(request)
        await self._note_change()
        if isinstance(step, Reply):
            return await self._play(http, request, step)
        return await self._fail(request, step)

    async def _fail(self, request: ModelRequest, step: Step) -> web.StreamResponse:
        await self._note_change()
        if isinstance(step, HttpError):
            return answering.failed(request, step)
        await silence()
        raise AssertionError("silence ended")

    async def _play(self, http: web.Request, request: ModelRequest, step: Reply) -> web.StreamResponse:
        reply = answering.minted(step, self._ids)
        usage = replace(self.cache.take(request.body), output=answering.output_tokens(reply))
        usage = request.usage = reply.usage or usage
        message = answering.message_of(reply, request, usage, self._ids.new("msg_"))
        self.memory.keep(message["content"], reply.why_stopped)
        request.status = 200
        playing = Playing(http, request, self._stepper, self.on_event)
        try:
            if not request.streams:
                return await answering.whole(playing, reply, message)
            return await playing.stream(actions_of(reply, message, usage), reply.delay)
        finally:
            self._book(request, usage, playing)

    def _book(self, request: ModelRequest, usage: Usage, playing: Playing) -> None:
        if request.status != 200:
            return
        finished = request.finished_ns is not None and "error" not in request.event_names
        output = usage.output if finished or "message_delta" in request.event_names else None
        if output is None:
            output = answering.output_sent(playing.sent)
        entry = ledger.Entry(request.number, request.model, replace(usage, output=output), finished)
        self.ledger.append(entry)

    async def _at_the_door(self, http: web.Request, request: ModelRequest) -> web.Response | None:
        await self._note_change()
        try:
            request.raw = await door.read_body(http)
            door.check_headers(request.headers, api_key=self.api_key)
            if http.method == "POST":
                request.body = door.parse(request.raw)
        except door.Refused as refusal:
            return answering.refused(request, [refusal.fault])
        return None

    def _ask(self, request: ModelRequest, *, counting: bool = False) -> Ask:
        beta = "anthropic-beta" in request.headers
        version = request.headers["anthropic-version"]
        return Ask(request.body, self.context, self.memory, version, beta=beta, counting=counting)

    def _recorded(self, http: web.Request, log: list[ModelRequest]) -> ModelRequest:
        headers = {name.lower(): value for name, value in http.headers.items()}
        number = len(self.requests) + len(self.other_requests) + 1
        request = ModelRequest(number, http.path_qs, headers)
        log.append(request)
        return request

    # The smaller endpoints

    async def _count_tokens(self, http: web.Request) -> web.StreamResponse:
        request = self._recorded(http, self.other_requests)
        if refusal := await self._at_the_door(http, request):
            return refusal
        if faults := judge(self._ask(request, counting=True)):
            return answering.refused(request, faults)
        request.verdict = "accepted"
        return answering.json_answer(request, 200, {"input_tokens": tokens_of(request.body)})

    async def _models(self, http: web.Request) -> web.StreamResponse:
        request = self._recorded(http, self.other_requests)
        if refusal := await self._at_the_door(http, request):
            return refusal
        models = [card.info() for card in CATALOGUE.values()]
        page = {"data": models, "has_more": False, "first_id": models[0]["id"], "last_id": models[-1]["id"]}
        return answering.json_answer(request, 200, page)

    async def _model(self, http: web.Request) -> web.StreamResponse:
        request = self._recorded(http, self.other_requests)
        if refusal := await self._at_the_door(http, request):
            return refusal
        name = http.match_info["model"]
        card = card_of(name)
        if card is None:
            return answering.failed(request, HttpError(404, "not_found_error", f"model: {name}"))
        return answering.json_answer(request, 200, card.info())

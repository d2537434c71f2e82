"""The Model port over Anthropic's Messages API.

The SDK's raw events are read, not its accumulating helper, which costs three times as much a delta and parses
a call's whole input again at each of them. Its retries are off: whoever asks decides about them.
"""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bot.model.failures import failure_of
from bot.model.prices import cost_usd
from bot.model.stream import Broken, Reading
from bot.model.tool_names import with_own_names
from bot.model.wire import characters, request_body
from core.generation import Generated, GenerationFailed, GenerationOutcome, ModelRequest
from core.history import Json
from core.usage import Usage

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, Timeout

PURPOSE_HEADER = "X-Watchkeeper-Purpose"
CONNECT_TIMEOUT_S = 10.0
# After the last event only the end of the body is missing; a connection read to its end is used again.
LINGER_S = 0.25
CHARACTERS_PER_TOKEN = 4
"""Only for estimates: https://docs.claude.com/en/docs/about-claude/glossary (a token is about 3.5 signs)."""


class AnthropicModel:
    """One model of Anthropic's, or of a server that speaks its wire; one connection pool for all requests."""

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None,
        base_url: str | None,
        max_tokens: int,
        idle_timeout_s: float,
        thinking_tokens: int = 0,
    ) -> None:
        self._name = name
        self._api_key = api_key
        self._base_url = base_url
        self.max_tokens = max_tokens
        self.idle_timeout_s = idle_timeout_s
        self.thinking_tokens = thinking_tokens
        self._made: tuple[AsyncAnthropic, Timeout] | None = None
        self._making = asyncio.Lock()

    @property
    def name(self) -> str:
        """The model's name, as booked."""
        return self._name

    def open(self, request: ModelRequest) -> AnthropicGeneration:
        """Prepare a request; nothing is sent before `run`."""
        return AnthropicGeneration(self, request)

    async def warm_up(self) -> None:
        """Load the SDK and the price list before the first request needs them."""
        await self.client()

    async def close(self) -> None:
        """Close all connections."""
        made, self._made = self._made, None
        if made is not None:
            await made[0].close()

    async def client(self) -> tuple[AsyncAnthropic, Timeout]:
        """The SDK's client, made once, in a thread: its import takes 2 s, and the loop has leases to keep."""
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make)
            return self._made

    def _make(self) -> tuple[AsyncAnthropic, Timeout]:
        from anthropic import AsyncAnthropic, Timeout  # noqa: PLC0415, see above

        cost_usd(Usage(), self._name)
        # The read limit counts from byte to byte, so pings keep a slow answer alive.
        timeout = Timeout(self.idle_timeout_s, connect=CONNECT_TIMEOUT_S)
        client = AsyncAnthropic(
            api_key=self._api_key, base_url=self._base_url, timeout=timeout, max_retries=0
        )
        gc.freeze()  # what was loaded stays; a full collection that walked it would stop everything for 0.3 s
        return client, timeout


class AnthropicGeneration:
    """One request under way."""

    def __init__(self, model: AnthropicModel, request: ModelRequest) -> None:
        self._model = model
        self._request = request
        self._reading = Reading()
        self._body: dict[str, Json] | None = None
        self._usage: Usage | None = None

    @property
    def doing(self) -> str:
        """What the model is doing, in a few words; never its words or thoughts."""
        return self._reading.doing

    @property
    def usage(self) -> Usage:
        """What it has cost so far: estimated until the provider has told the end."""
        return self._usage if self._usage is not None else self._estimate()

    async def run(self) -> GenerationOutcome:
        """Send the request and read its answer. Called once. Raises nothing but CancelledError."""
        try:
            await self._exchange()
            message, stop, invalid = self._reading.result()
        # A failure is a value for the caller, whatever it is; only being cancelled is none.
        except Exception as error:  # noqa: BLE001
            return self._failed(error)
        self._usage = self._counted()
        message = with_own_names(message, (spec.name for spec in self._request.tools))
        return Generated(message, stop, self._usage, self._reading.model or self._model.name, invalid)

    async def _exchange(self) -> None:
        client, timeout = await self._model.client()
        model = self._model
        body = request_body(
            self._request,
            model=model.name,
            max_tokens=model.max_tokens,
            thinking_tokens=model.thinking_tokens,
        )
        purpose = self._request.purpose
        headers = {} if purpose == "step" else {PURPOSE_HEADER: purpose}
        self._body = body
        stream = await client.messages.create(**body, stream=True, extra_headers=headers, timeout=timeout)
        try:
            await self._read(stream)
        finally:
            await stream.close()

    async def _read(self, stream: Any) -> None:
        import httpx2  # noqa: PLC0415, comes with the SDK

        reading, take, loads = self._reading, self._reading.take, json.loads
        try:
            async with (
                asyncio.timeout(None) as linger,
                aclosing(stream.raw_events(stream.response)) as events,
            ):
                async for event in events:
                    data = event.data
                    if not data or data == "[DONE]":
                        continue
                    take(loads(data))
                    if reading.ended and linger.when() is None:
                        linger.reschedule(asyncio.get_running_loop().time() + LINGER_S)
        except (TimeoutError, httpx2.HTTPError):
            if not reading.is_complete:
                raise
        except (ValueError, RecursionError) as error:
            raise Broken("an event is not JSON") from error

    def _failed(self, error: Exception) -> GenerationFailed:
        failure = failure_of(error, model=self._model.name, idle_timeout_s=self._model.idle_timeout_s)
        self._usage = self._estimate() if failure.billable else Usage()
        return GenerationFailed(failure.cause, failure.temporary, self._usage, failure.retry_after_s)

    def _counted(self) -> Usage:
        """The usage of a whole message."""
        told = self._reading.usage
        if "output_tokens" not in told or "input_tokens" not in told:
            return self._estimate()
        return self._priced(told["input_tokens"], told["output_tokens"], exact=True)

    def _estimate(self) -> Usage:
        """Input as the provider told at the start, output from the characters that came."""
        reading = self._reading
        if self._body is None:
            return Usage()
        written = -(-reading.characters // CHARACTERS_PER_TOKEN)
        given = reading.usage.get("input_tokens")
        if given is None:
            given = characters(self._body) // CHARACTERS_PER_TOKEN
        return self._priced(given, max(written, reading.usage.get("output_tokens", 0)), exact=False)

    def _priced(self, given: int, written: int, *, exact: bool) -> Usage:
        told = self._reading.usage
        usage = Usage(
            input_tokens=given,
            output_tokens=written,
            cache_read_tokens=told.get("cache_read_input_tokens", 0),
            cache_write_tokens=told.get("cache_creation_input_tokens", 0),
            exact=exact,
        )
        models = dict.fromkeys(name for name in (self._reading.model, self._model.name) if name)
        return replace(usage, cost_usd=cost_usd(usage, *models))

"""One call from its issue to its result: prepare, execute, close.

Rule 1: every call comes back as a result, whatever happens; only the death of the process raises.
Rule 2: a result says what is known and no more (`core.tools` has the words).
Rule 3: only a read-only tool that is interruptible is asked to stop for a hurry; time limits hold for all.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from bot.ports import Hurry, ToolCall
from bot.tools.clean import bound, clean, one_line, shorten
from bot.tools.provider import CallContext, MayGoOn, Provider, ToolOutput
from core.redaction import Redactor
from core.tools import (
    CallResult,
    Chart,
    Outcome,
    ToolClass,
    ToolSpec,
    asked_to_stop,
    not_executed,
    stopped,
    timed_out,
)

log = structlog.get_logger()

GRACE_S = 1.0  # a call that was asked to stop has so long to confirm it
SO_FAR_LINES = 40
SO_FAR_BYTES = 8_192
LARGEST_CHART = 4_000_000  # bytes of PNG
LONG_TEXT = 262_144  # characters: from here on redacting is left to a thread


class SoFar:
    """What a call had so far: the newest lines it told."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Remember a line; a repeat of the newest one is not worth a line."""
        if line and (not self._lines or self._lines[-1] != line):
            self._lines.append(line[:SO_FAR_BYTES])
            del self._lines[:-SO_FAR_LINES]

    def text(self, answer: ToolOutput | None = None) -> str:
        """All of it, with what the tool answered when it was asked to stop."""
        return "\n".join([*self._lines, answer.text] if answer and answer.text else self._lines)


class Runner:
    """Runs calls. Keeps what did not stop when asked to, until it does or the process ends."""

    def __init__(self, redactor: Redactor, grace_s: float = GRACE_S) -> None:
        self._redactor = redactor
        self._grace_s = grace_s
        self._left_behind: set[asyncio.Task[ToolOutput]] = set()

    async def run(self, call: ToolCall, spec: ToolSpec, provider: Provider, hurry: Hurry) -> CallResult:
        """Execute a prepared call, then redact and bound what came back."""
        result = await self._execute(call, spec, provider, hurry)
        return await self._closed(result, spec.max_bytes)

    async def _execute(self, call: ToolCall, spec: ToolSpec, provider: Provider, hurry: Hurry) -> CallResult:
        may_hurry = spec.interruptible and spec.tool_class is ToolClass.READ_ONLY
        if may_hurry and hurry.is_set():
            return not_executed("the turn was asked to stop or change course before this call was sent")
        so_far = SoFar()
        context = CallContext(call.call_id, so_far.add)
        began = asyncio.get_running_loop().time()
        work = asyncio.create_task(provider.execute(call.tool, call.input, context), name=f"tool {call.tool}")
        wish = asyncio.create_task(_wished(hurry)) if may_hurry else None
        try:
            watched: set[asyncio.Task[ToolOutput] | asyncio.Task[None]] = {work} | ({wish} if wish else set())
            await asyncio.wait(watched, timeout=spec.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return _finished(call.tool, work)
            hurried = wish is not None and wish.done()
            seconds = asyncio.get_running_loop().time() - began
            confirmed, answer = await self._ask_to_stop(work)
            log.info(
                "tool_stopped", tool=call.tool, call_id=call.call_id, hurried=hurried, confirmed=confirmed
            )
            if not hurried:
                return timed_out(spec.timeout_s, so_far.text(answer))
            return (stopped if confirmed else asked_to_stop)(seconds, so_far.text(answer))
        finally:
            if wish is not None:
                wish.cancel()
            self._leave(work)

    async def _ask_to_stop(self, work: asyncio.Task[ToolOutput]) -> tuple[bool, ToolOutput | None]:
        """Whether the call confirmed that it stopped, and what it answered to that."""
        work.cancel()
        await asyncio.wait({work}, timeout=self._grace_s)
        if not work.done():
            return False, None
        if work.cancelled():
            return True, None
        if work.exception() is not None:
            return False, None
        return True, work.result()

    def _leave(self, work: asyncio.Task[ToolOutput]) -> None:
        """Let go of a call that does not end; the loop itself would not keep its task alive."""
        if work.done():
            return
        work.cancel()
        self._left_behind.add(work)
        work.add_done_callback(self._forget)

    def _forget(self, work: asyncio.Task[ToolOutput]) -> None:
        self._left_behind.discard(work)
        if not work.cancelled():
            work.exception()  # looked at, so that asyncio does not complain that nobody did

    async def close(self) -> None:
        """Wait a moment for what was left behind."""
        if self._left_behind:
            await asyncio.wait(set(self._left_behind), timeout=self._grace_s)

    async def _closed(self, result: CallResult, max_bytes: int) -> CallResult:
        text = shorten(result.text, max(4 * max_bytes, 1_048_576))
        if len(text) > LONG_TEXT:
            safe = await asyncio.to_thread(self._safe, text)
        else:
            safe = self._safe(text)
        charts = tuple(
            Chart(self._redactor.redact(one_line(chart.title)), chart.png)
            for chart in result.charts
            if len(chart.png) <= LARGEST_CHART
        )
        return replace(
            result,
            text=bound(safe, max_bytes),
            query=self._redactor.redact(one_line(result.query, 500)),
            time_range=self._redactor.redact(one_line(result.time_range, 200)),
            charts=charts,
        )

    def _safe(self, text: str) -> str:
        return self._redactor.redact(clean(text))


async def _wished(hurry: Hurry) -> None:
    await hurry.wait()


def _finished(tool: str, work: asyncio.Task[ToolOutput]) -> CallResult:
    """The result of a call that ended by itself."""
    if work.cancelled():
        return CallResult(Outcome.ERROR, f"{tool} was broken off; it may have taken effect")
    error = work.exception()
    if isinstance(error, MayGoOn):
        return CallResult(Outcome.ERROR, f"{tool} gave up waiting: {one_line(str(error))}")
    if error is not None:
        log.warning("tool_failed", tool=tool, kind=type(error).__name__)
        return CallResult(Outcome.ERROR, f"{tool} failed: {_words(error)}")
    output = work.result()
    return CallResult(
        Outcome.ERROR if output.is_error else Outcome.OK,
        output.text,
        output.query,
        output.time_range,
        output.charts,
    )


def _words(error: BaseException) -> str:
    message = one_line(str(error))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__

"""Who decides what the model says next: steps in their order, or a function of the request."""

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from tests.servers.anthropic.blocks import Block
from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Hang, HttpError, Reply, Step, reply

Scripted = Step | str | Block | Sequence[str | Block | Gate]
"""A string or blocks by themselves are a reply of just that."""
Answerer = Callable[[ModelRequest], Scripted | Awaitable[Scripted]]


class Script:
    def __init__(self) -> None:
        self.failures: deque[HttpError | Hang] = deque()
        self.steps: deque[Step] = deque()
        self.answerer: Answerer | None = None
        self.default: Scripted | None = None

    def next_failure(self) -> HttpError | Hang | None:
        return self.failures.popleft() if self.failures else None

    async def next_step(self, request: ModelRequest) -> Step:
        if self.steps:
            return self.steps.popleft()
        if self.answerer is not None:
            answer = self.answerer(request)
            return step_of(await answer if inspect.isawaitable(answer) else answer)
        if self.default is not None:
            return step_of(self.default)
        words = f"The script of this test server has no step for request {request.number}."
        return HttpError(500, "api_error", words, {"x-should-retry": "false"})


def step_of(scripted: Scripted) -> Step:
    if isinstance(scripted, Reply | HttpError | Hang):
        return scripted
    if isinstance(scripted, str | Block):
        return reply(scripted)
    return reply(*scripted)

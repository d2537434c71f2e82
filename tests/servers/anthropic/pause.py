"""Single steps: while holding, every event of every stream waits for the test."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pause:
    request: int
    event: int
    name: str
    go: asyncio.Event = field(default_factory=asyncio.Event)
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: bool = False

    def __str__(self) -> str:
        return f"request {self.request}, event {self.event} ({self.name})"


class Stepper:
    def __init__(self) -> None:
        self.holding = False
        self.waiting: list[Pause] = []
        self._arrived = asyncio.Condition()

    async def pause(self, pause: Pause) -> None:
        """For the server: wait for a step, unless nobody holds."""
        if not self.holding:
            return
        self.waiting.append(pause)
        async with self._arrived:
            self._arrived.notify_all()
        try:
            await pause.go.wait()
        except asyncio.CancelledError:
            pause.abandoned = True
            pause.sent.set()
            raise
        finally:
            if pause in self.waiting:
                self.waiting.remove(pause)

    async def next_pause(self, request: int | None = None, *, timeout: float = 5.0) -> Pause:
        """The stream that waits longest, or that of one request, without letting it go."""

        def found() -> Pause | None:
            return next((p for p in self.waiting if request in (None, p.request) and not p.go.is_set()), None)

        async with self._arrived:
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait_for(lambda: found() is not None)
            except TimeoutError:
                raise AssertionError(f"no stream waits for a step within {timeout} s") from None
        pause = found()
        assert pause is not None
        return pause

    async def step(self, request: int | None = None, *, timeout: float = 5.0) -> Pause:
        """Let one event go, and return when it has been sent."""
        pause = await self.next_pause(request, timeout=timeout)
        pause.go.set()
        try:
            async with asyncio.timeout(timeout):
                await pause.sent.wait()
        except TimeoutError:
            raise AssertionError(f"{pause} was let go and not sent within {timeout} s") from None
        return pause

    def let_go(self) -> None:
        self.holding = False
        for pause in self.waiting:
            pause.go.set()

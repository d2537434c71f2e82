"""A gate holds a stream between two events until the test releases it."""

import asyncio


class Gate:
    def __init__(self, name: str, *, patience: float = 5.0) -> None:
        self.name = name
        self._patience = patience
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self, timeout: float | None = None) -> None:
        """Wait until a stream stands at this gate."""
        await self._within(self._reached, timeout, "no stream reached it")

    def release(self) -> None:
        self._released.set()

    @property
    def is_reached(self) -> bool:
        return self._reached.is_set()

    async def hold(self) -> None:
        """For the server: stand here. Ends with the release, or with the server."""
        self._reached.set()
        await self._released.wait()

    async def _within(self, event: asyncio.Event, timeout: float | None, complaint: str) -> None:
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                await event.wait()
        except TimeoutError:
            raise AssertionError(f"gate {self.name!r}: {complaint} in time") from None

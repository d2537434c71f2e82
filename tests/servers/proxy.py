"""A TCP proxy that fails as networks do: it holds, loses one direction, resets, is slow, refuses.

All proxies live on one thread and loop of their own, so that they work while the test's loop is busy; what a
test tells them may be told from anywhere. What a black hole held arrives late once it passes again, as after
a partition. A `Wire` sees what passes through one connection and may drop, double, delay or cut it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

HOST = "127.0.0.1"
CHUNK = 65_536
OBEYS_WITHIN_S = 5.0
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of nothing: the connection ends with a RST


class Direction(Enum):
    """Where bytes go."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


BOTH = (Direction.TO_SERVER, Direction.TO_CLIENT)


class Cut(Enum):
    """What a wire may make of the connection, in place of bytes."""

    RESET = "both ends are reset"
    SILENCE = "nothing comes any more in this direction, and the connection stays open"


@dataclass(frozen=True, slots=True)
class Pause:
    """What follows is so late."""

    seconds: float


Part = bytes | Cut | Pause


class Wire:
    """What passes through one connection; this one lets everything through."""

    def to_server(self, chunk: bytes) -> Iterable[Part]:
        """What becomes of what the client sent."""
        return (chunk,)

    def to_client(self, chunk: bytes) -> Iterable[Part]:
        """What becomes of what the server sent."""
        return (chunk,)


@dataclass(eq=False)
class Link:
    """One connection: the client's end and the server's end."""

    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    wire: Wire

    def ends(self, direction: Direction) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Where to read from and where to write to."""
        source, target = self.client, self.server
        if direction is Direction.TO_CLIENT:
            source, target = target, source
        return source[0], target[1]

    def parts(self, direction: Direction, chunk: bytes) -> Iterable[Part]:
        """What the wire makes of a chunk."""
        seen = self.wire.to_server if direction is Direction.TO_SERVER else self.wire.to_client
        return seen(chunk)

    def reset(self) -> None:
        """RST to both ends."""
        for _, writer in (self.client, self.server):
            _reset(writer)


class Proxy:
    """One port in front of another. `start` it, point the client at `port`, `close` it."""

    def __init__(self, upstream: int, wire: Callable[[], Wire] = Wire) -> None:
        self.upstream = upstream
        self.port = 0
        self._wire = wire
        self._delay_s = 0.0
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._open = {direction: asyncio.Event() for direction in Direction}

    def start(self) -> Proxy:
        """Listen on a port of its own."""
        _call(self._listen())
        for gate in self._open.values():
            _do(gate.set)
        return self

    def close(self) -> None:
        """End every connection and stop listening."""
        _call(self._close())

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._links)

    # --- what can be done to it -----------------------------------------------------------------------------

    def pass_on(self) -> None:
        """All is well again: what was held goes on, and connections are taken."""
        _call(self._heal())

    def black_hole(self) -> None:
        """Nothing goes either way, and nobody is told; new connections are taken, and meet the same."""
        for direction in BOTH:
            self.hold(direction)

    def hold(self, direction: Direction) -> None:
        """Nothing goes in this direction (half-open)."""
        _do(self._open[direction].clear)

    def reset(self) -> None:
        """Reset every connection; new ones are taken."""
        _do(self._reset_all)

    def refuse(self) -> None:
        """Reset every connection and take no new ones."""
        _call(self._stop_listening())
        self.reset()

    def slow(self, seconds: float) -> None:
        """Each piece is so late from now on."""
        self._delay_s = seconds

    # --- on the proxies' loop -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._take, HOST, self.port)
            self.port = int(self._server.sockets[0].getsockname()[1])

    async def _stop_listening(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _heal(self) -> None:
        self._delay_s = 0.0
        for gate in self._open.values():
            gate.set()
        await self._listen()

    async def _close(self) -> None:
        await self._stop_listening()
        self._reset_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _reset_all(self) -> None:
        for link in list(self._links):
            link.reset()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._open[Direction.TO_SERVER].wait()
            await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            _reset(writer)
        finally:
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_connection(HOST, self.upstream)
        link = Link((reader, writer), server, self._wire())
        self._links.add(link)
        pumps = [asyncio.create_task(self._pump(link, direction)) for direction in BOTH]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            for end in (writer, server[1]):
                end.close()

    async def _pump(self, link: Link, direction: Direction) -> None:
        reader, writer = link.ends(direction)
        gate = self._open[direction]
        with suppress(OSError):
            while True:
                await gate.wait()
                chunk = await reader.read(CHUNK)
                await gate.wait()  # it may have closed while nothing came
                if not chunk:
                    return
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                for part in link.parts(direction, chunk):
                    await self._pass(link, writer, part)

    async def _pass(self, link: Link, writer: asyncio.StreamWriter, part: Part) -> None:
        match part:
            case bytes():
                writer.write(part)
                await writer.drain()
            case Pause():
                await asyncio.sleep(part.seconds)
            case Cut.RESET:
                link.reset()
            case Cut.SILENCE:
                await asyncio.Event().wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The proxies' loop; its thread ends with the interpreter."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="proxies", daemon=True).start()
    return loop


def _call(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result(OBEYS_WITHIN_S)


def _do(work: Callable[[], object]) -> None:
    """Run it there and wait until it is done."""

    async def done() -> None:
        work()

    _call(done())

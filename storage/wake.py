"""Redis rings and listens: a hint that something may have changed, never the truth.

A ring may be lost, doubled or late. Whoever rings never waits and never fails; what could not be sent is sent
after the reconnect. Each time the connection stands (again), `on_connected` is called once, since nobody
knows what was missed until then. A connection serves one purpose, and is given up at the first doubt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import uuid4

import structlog
from redis.asyncio import Connection

from storage.redis_address import ANSWER_WITHIN_S, NAMESPACE, NOT_USABLE, RedisAddress

log = structlog.get_logger()

Heard = Callable[[str, str], None]
"""Called with the kind and the name of a ring: ("topic", "work")."""

PING_EVERY_S = 1.0
SILENT_FOR_S = 3.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
MOST_WAITING = 10_000


class Wake:
    """The rings of one process among those of all that use the same database of the same Redis."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._channel = f"{NAMESPACE}:{address.database}:bells"
        self._us = uuid4().hex[:12]
        self._waiting: dict[str, None] = {}  # a set that keeps its order
        self._rung = asyncio.Event()
        self._reason = "Redis: not connected yet"

    @property
    def reason(self) -> str:
        """Why it is not connected now, for people; empty when it is."""
        return self._reason

    def ring(self, kind: str, name: str) -> None:
        """Ring in all other processes, soon. One that waits already is not doubled."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting[f"{self._us} {kind} {name}"] = None
            self._rung.set()

    async def run(self, heard: Heard, on_connected: Callable[[], None]) -> None:
        """Stay connected for ever."""
        pause = FIRST_PAUSE_S
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._stay_connected(heard, on_connected)
            except NOT_USABLE as error:
                self._say_why(f"Redis: {self._address.why(error)}")
            if clock() - began > LONGEST_PAUSE_S + SILENT_FOR_S:  # it stood for a while
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(LONGEST_PAUSE_S, pause * 2)

    async def _stay_connected(self, heard: Heard, on_connected: Callable[[], None]) -> None:
        """Connect, and return never; raises what ended it."""
        listening, speaking = self._address.connection(), self._address.connection()
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await speaking.connect()
                await listening.connect()
                await listening.send_command("SUBSCRIBE", self._channel)
                await listening.read_response()
            self._reason = ""
            log.info("redis_connected", address=str(self._address))
            on_connected()
            await _first_failure(
                self._listen(listening, heard), _keep_asking(listening), self._speak(speaking)
            )
        finally:
            for connection in (listening, speaking):
                await connection.disconnect(nowait=True)

    async def _listen(self, connection: Connection, heard: Heard) -> None:
        while True:
            async with asyncio.timeout(SILENT_FOR_S):  # answers to `_keep_asking` come in between
                answer = await connection.read_response()
            match answer:
                case [b"message", _, bytes(message)]:
                    self._hear(message, heard)

    def _hear(self, message: bytes, heard: Heard) -> None:
        """Pass on what another process rang; what cannot be read may come from another version."""
        match message.decode(errors="replace").split(" ", 2):
            case [sender, kind, name] if sender != self._us:
                heard(kind, name)

    async def _speak(self, connection: Connection) -> None:
        while True:
            if self._waiting:
                await self._publish(connection)
                continue
            self._rung.clear()
            try:
                async with asyncio.timeout(PING_EVERY_S):
                    await self._rung.wait()
            except TimeoutError:
                await _answers(connection, [("PING",)])

    async def _publish(self, connection: Connection) -> None:
        taken, self._waiting = self._waiting, {}
        try:
            await _answers(connection, [("PUBLISH", self._channel, message) for message in taken])
        except BaseException:
            self._waiting = taken | self._waiting
            raise

    def _say_why(self, reason: str) -> None:
        if reason != self._reason:
            log.warning("redis_unreachable", reason=reason)
        self._reason = reason


async def prove(address: RedisAddress) -> None:
    """Ping, and hear what we publish; raises what hinders it (NOT_USABLE)."""
    listening, speaking = address.connection(), address.connection()
    channel = f"{NAMESPACE}:{address.database}:doctor:{uuid4().hex[:12]}"
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            await listening.connect()
            await listening.send_command("SUBSCRIBE", channel)
            await listening.read_response()
            await speaking.connect()
            await _answers(speaking, [("PING",), ("PUBLISH", channel, "heard")])
            await listening.read_response()
    finally:
        for connection in (listening, speaking):
            await connection.disconnect(nowait=True)


async def _answers(connection: Connection, commands: list[tuple[str, ...]]) -> None:
    """Send all at once and read each answer; one that says no is raised."""
    async with asyncio.timeout(ANSWER_WITHIN_S):
        await connection.send_packed_command(connection.pack_commands(commands))
        for _ in commands:
            await connection.read_response()


async def _keep_asking(connection: Connection) -> None:
    """Make a connection that is quiet show that it lives; the listener hears the answers."""
    while True:
        await asyncio.sleep(PING_EVERY_S)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            await connection.send_command("PING")


async def _first_failure(*endless: Coroutine[Any, Any, None]) -> None:
    """Run all until one fails; raises that failure when the others have ended."""
    tasks = [asyncio.create_task(work) for work in endless]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()

"""With a Redis, without it, and while it comes and goes: work goes on, and `/readyz` says what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.servers import valkey
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.valkey import ValkeyServer
from tests.stories.room import Room, eventually
from tests.stories.telling import must_be_well


class RoomWithRedis(Room):
    """A room whose Watchkeeper is told of a Redis."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        super().__init__(folder)
        self._redis_url = redis_url

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "REDIS_URL": self._redis_url}


@asynccontextmanager
async def story(folder: Path, redis_url: str) -> AsyncIterator[Room]:
    async with RoomWithRedis(folder, redis_url) as room:
        await room.start()
        yield room
        await must_be_well(room)


async def readiness(room: Room) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{room.port}/readyz") as answer,
    ):
        return answer.status, await answer.text()


async def is_ready(room: Room) -> bool:
    return (await readiness(room))[0] == 200


async def is_answered(room: Room, *, after: int) -> None:
    room.model.script(reply(text("The deploy did it.")))
    await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
    await room.until_settled(*["completed"] * (after + 1))


async def test_with_a_redis_it_is_ready_and_answers_and_counts_its_calls_there(tmp_path: Path) -> None:
    url = valkey.shared().fresh_url()
    async with story(tmp_path, url) as room:
        await eventually(lambda: is_ready(room))
        await is_answered(room, after=0)
        counted = str(await valkey.shared().command("KEYS", "watchkeeper:pace:*", url=url))
        assert "chat.update:taken" in counted
        assert room.slack.bot_token not in counted


async def test_a_redis_that_is_not_there_ends_no_start_and_hinders_no_answer(tmp_path: Path) -> None:
    async with story(tmp_path, "redis://:hunter2hunter2@127.0.0.1:1/0") as room:

        async def said() -> bool:
            return (
                "Redis: cannot be reached at 127.0.0.1:1 (Connection refused)" in (await readiness(room))[1]
            )

        await eventually(said)
        status, words = await readiness(room)
        assert status == 503
        assert "hunter2hunter2" not in words
        await is_answered(room, after=0)


@pytest.mark.slow
async def test_a_redis_that_goes_and_comes_back_is_used_again(tmp_path: Path) -> None:
    async with ValkeyServer() as server, story(tmp_path, server.url) as room:
        await eventually(lambda: is_ready(room))
        server.kill()
        await is_answered(room, after=0)

        async def is_missed() -> bool:
            return not await is_ready(room)

        await eventually(is_missed)
        await server.start()
        await eventually(lambda: is_ready(room))
        await is_answered(room, after=1)


async def test_a_redis_that_stops_answering_hinders_no_answer(tmp_path: Path) -> None:
    async with ValkeyServer() as server, story(tmp_path, server.url) as room:
        await eventually(lambda: is_ready(room))
        server.pause()
        await is_answered(room, after=0)
        server.resume()

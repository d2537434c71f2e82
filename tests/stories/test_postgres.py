"""On Postgres: a start without it waits for it, and its troubles lose nothing and end nothing."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot import cli
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.postgres import PostgresServer
from tests.storage.fresh import shared_postgres
from tests.stories.room import Room, eventually
from tests.stories.scripted import Script, clear
from tests.stories.telling import must_be_well


async def readiness(room: Room) -> tuple[int, list[str]]:
    """What /readyz answers; 0 while nobody answers."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{room.port}/readyz") as answer,
        ):
            return answer.status, (await answer.json())["reasons"]
    except aiohttp.ClientError:
        return 0, []


@pytest.fixture
def server() -> Any:
    """A Postgres of this story's own, to be maltreated."""
    server = PostgresServer().start()
    yield server
    server.close()


@pytest.mark.slow
async def test_a_start_without_the_database_waits_for_it_and_says_so(
    tmp_path: Path, server: PostgresServer
) -> None:
    await server.create("late")
    server.stop()
    async with Room(tmp_path) as room:
        room.use_database(server.url("late"))
        room.model.script(reply(text("The deploy removed an index.")))
        starting = asyncio.create_task(room.start())

        async def says_why() -> bool:
            status, reasons = await readiness(room)
            return status == 503 and any("DATABASE_URL" in reason for reason in reasons)

        await eventually(says_why)
        server.start()
        await starting
        await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        await room.until_settled("completed")
        assert (await readiness(room))[0] == 200
        await must_be_well(room)


def test_a_database_that_does_not_exist_ends_the_start_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_APP_TOKEN": "xapp-1",
        "ANTHROPIC_API_KEY": "k",
        "DATABASE_URL": shared_postgres().url("nowhere"),
    }.items():
        monkeypatch.setenv(name, value)
    assert cli.run(["serve"]) == 2
    said = capsys.readouterr().err
    assert "DATABASE_URL" in said
    assert "nowhere" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, None], ids=["fast", "immediate", "sessions"])
async def test_trouble_in_the_middle_of_an_analysis_ends_nothing_and_loses_nothing(
    tmp_path: Path, server: PostgresServer, how: signal.Signals | None
) -> None:
    await server.create("records")

    async def trouble(script: Script, number: int, name: str) -> None:
        if number % 12 == 5:
            if how is None:
                await server.end_sessions("records")
            else:
                server.restart(how)

    async with Room(tmp_path) as room:
        room.use_database(server.url("records"))
        await room.start()
        clear(room.folder)
        script = Script(room, lambda number, name: trouble(script, number, name))
        script.install()
        releasing = asyncio.create_task(script.release_calls())
        script.thread = await room.slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
        script.began.set()

        async def answered() -> bool:
            return bool(await room.settles()) and (await room.settles())[-1]["answer_posted_at"] is not None

        await eventually(answered, timeout=50)
        releasing.cancel()
        await asyncio.gather(releasing, return_exceptions=True)
        assert (await room.reasons())[-1] == "completed"
        assert set(await room.reasons()) <= {"completed", "stale"}
        await must_be_well(room)

"""The incident served by an application of its own, at a fixed time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer

from bot.incident.app import incident_app
from bot.incident.incident import Incident
from tests.bot.incident.stories import EVENING, samples, story


@dataclass
class Shop:
    """The application of one story."""

    incident: Incident
    client: TestClient[Any, Any]

    async def get(self, path: str, **parameters: str) -> tuple[int, Any]:
        """Status and JSON, or text where it is none."""
        async with self.client.get(path, params=parameters) as answer:
            return answer.status, await _body(answer)

    async def post(self, path: str, **form: str) -> tuple[int, Any]:
        """The same with a form."""
        async with self.client.post(path, data=form) as answer:
            return answer.status, await _body(answer)


async def _body(answer: aiohttp.ClientResponse) -> Any:
    return await answer.json() if answer.content_type == "application/json" else await answer.text()


Open = Callable[..., Awaitable[Shop]]


@pytest_asyncio.fixture
async def shop() -> AsyncIterator[Open]:
    """Opens the shop of a scenario a minute after its alert."""
    opened: list[TestClient[Any, Any]] = []

    async def open_shop(name: str = "nothing_wrong") -> Shop:
        incident = Incident(name, 7, EVENING, clock=lambda: EVENING + 60)
        incident.samples = samples(story(name))
        client = TestClient(TestServer(incident_app(incident)))
        await client.start_server()
        opened.append(client)
        return Shop(incident, client)

    yield open_shop
    for client in opened:
        await client.close()

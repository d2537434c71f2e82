"""A server that speaks the real wire, and our model pointed at it."""

from collections.abc import AsyncIterator

import pytest

from bot.model.anthropic import AnthropicModel
from tests.servers.anthropic.server import AnthropicServer


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as running:
        yield running


@pytest.fixture
async def model(server: AnthropicServer) -> AsyncIterator[AnthropicModel]:
    made = pointed_at(server, idle_timeout_s=5)
    await made.warm_up()
    yield made
    await made.close()


@pytest.fixture
async def hasty(server: AnthropicServer) -> AsyncIterator[AnthropicModel]:
    """Gives up after 0.3 s of silence."""
    made = pointed_at(server, idle_timeout_s=0.3)
    await made.warm_up()
    yield made
    await made.close()


def pointed_at(server: AnthropicServer, *, idle_timeout_s: float) -> AnthropicModel:
    return AnthropicModel(
        "claude-sonnet-5-5",
        api_key="sk-test",
        base_url=server.url,
        max_tokens=4096,
        idle_timeout_s=idle_timeout_s,
    )

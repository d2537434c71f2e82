"""An open channel in an empty folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.console.channel import Channel


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[Channel]:
    opened = await Channel.open(tmp_path / "console.db")
    yield opened
    await opened.close()

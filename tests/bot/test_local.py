"""`watchkeeper local`: what it refuses, what it does without, and how soon its page is there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bot.terminal import Command, bare_environment, refused
from tests.stories.room import free_port

NOT_LOADED = ("slack_bolt", "slack_sdk", "mcp", "anthropic", "matplotlib", "genai_prices")


def test_a_port_in_use_is_told_in_one_line(watchkeeper: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = refused(watchkeeper("local --no-open", WATCHKEEPER_PORT=str(taken.getsockname()[1])))
    assert "in use" in told


def test_a_database_server_is_refused(watchkeeper: Command) -> None:
    told = refused(watchkeeper("local --no-open", DATABASE_URL="postgresql://u:hunter2@127.0.0.1/x"))
    assert "SQLite" in told
    assert "hunter2" not in told


def test_what_loads_slowly_is_not_loaded_before_it_is_needed() -> None:
    script = (
        "import sys, bot.cli, bot.compose.console;"
        f"print([name for name in {NOT_LOADED!r} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=bare_environment(), capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, float]]:
    """The command without any key, its address, and after how many seconds its first page was there."""
    port = free_port()
    environment = bare_environment() | {"WATCHKEEPER_PORT": str(port), "HOME": str(folder)}
    began = time.monotonic()
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bot", "local", "--no-open"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        address = f"http://127.0.0.1:{port}/"
        assert "Start the incident" in _page(address)
        yield process, address, time.monotonic() - began
    finally:
        process.terminate()
        process.wait(20)


def _page(address: str) -> str:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.slow
def test_it_starts_without_any_key_ends_well_and_is_soon_there_again(tmp_path: Path) -> None:
    with running(tmp_path) as (process, _, _):
        process.terminate()
        assert process.wait(20) == 0
    took = []
    for _ in range(3):
        with running(tmp_path) as (_, address, seconds):
            took.append(seconds)
            assert "no key needed" in _page(address)
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert min(took) < 2.0 * max(1.0, busy), (tmp_path / "log").read_text()

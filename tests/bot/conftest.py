"""The command, run in this process: a new one takes a second to start."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot.cli import run
from tests.bot.terminal import OUTSIDE, Command, Ran


@pytest.fixture
def watchkeeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """The command, in an empty folder, with nothing in its environment but what is given."""
    handlers = logging.getLogger().handlers[:]
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(OUTSIDE)]:
        monkeypatch.delenv(name)

    def ran(line: str, **environ: str) -> Ran:
        with monkeypatch.context() as given:
            for name, value in environ.items():
                given.setenv(name, value)
            code = run(line.split())
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    yield ran
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()

"""The command as it is met on a terminal."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OUTSIDE = ("SLACK_", "ANTHROPIC_", "OPENAI_", "DATABASE_", "REDIS_", "WATCHKEEPER_")
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Ran]


def bare_environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)}
    return inherited | {"PYTHONPATH": str(ROOT)}


def refused(ran: Ran, code: int = 2) -> str:
    """What it told people: one or two lines, no traceback, nothing on standard output."""
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert 1 <= len(ran.stderr.splitlines()) <= 2
    assert "Traceback" not in ran.stderr
    return ran.stderr

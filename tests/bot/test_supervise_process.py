"""A child that dies is started again; one that ends of its own accord ends its parent, as a signal does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.bot.terminal import bare_environment

PARENT = """
import os, signal, sys, time
from pathlib import Path
from bot.supervise_process import Supervisor

def work(number):
    Path(f"child-{number}").write_text(str(os.getpid()))
    return CHILDREN[number]()

def waits():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    time.sleep(30)
    return 9

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

CHILDREN = [%s]
sys.exit(Supervisor(work, 75, lambda words: print(words, flush=True)).run())
"""


@pytest.mark.parametrize(
    "children,code,started",
    [
        ("lambda: 0", 0, 1),
        ("lambda: 2", 2, 1),
        ("dies, lambda: 0", 0, 2),
        ("lambda: 75, dies, lambda: 3", 3, 3),
    ],
)
def test_what_becomes_of_a_child_decides_whether_there_is_another(
    tmp_path: Path, children: str, code: int, started: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PARENT % children],
        cwd=tmp_path,
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (ran.returncode, len(list(tmp_path.glob("child-*")))) == (code, started), ran.stderr
    assert ("SIGKILL" in ran.stdout) == ("dies" in children)


def waiting(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A parent whose child waits to be told to end, and the child's id."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT % "waits"], cwd=folder, env=bare_environment())
    said = folder / "child-0"
    deadline = time.monotonic() + 20
    while not (said.exists() and said.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    return parent, int(said.read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_child_drain_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    parent, child = waiting(tmp_path)
    parent.send_signal(number)
    assert parent.wait(20) == 0
    assert not psutil.pid_exists(child)


def test_a_child_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    parent, child = waiting(tmp_path)
    parent.kill()
    parent.wait(20)
    deadline = time.monotonic() + 10
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""A guarded command and all its descendants end when the guard's parent does, however that ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bot.tools import guard

GUARD = [sys.executable, "-I", "-S", str(Path(guard.__file__)), "--"]

# A server with a child that ignores SIGTERM, and a grandchild that made itself a daemon.
FAMILY = r"""
import os, signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(300)"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
os.wait()
time.sleep(300)
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A parent that runs the family under guard and waits."""
    (tmp_path / "family.py").write_text(FAMILY)
    command = [*GUARD, sys.executable, "-S", str(tmp_path / "family.py")]
    parent = subprocess.Popen(
        [
            sys.executable,
            "-S",
            "-c",
            f"import subprocess; subprocess.run({command!r}, start_new_session=True)",
        ]
    )
    yield parent
    for process in descendants(parent):
        process.kill()
    parent.kill()
    parent.wait()


def descendants(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Guard, server, child and daemon."""
    try:
        return psutil.Process(parent.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run."""
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return true()


def grown(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The family once it is complete."""
    assert until(lambda: len(descendants(parent)) >= 4, 10)
    time.sleep(0.2)  # until the child ignores SIGTERM
    return descendants(parent)


def test_the_whole_family_dies_within_two_seconds_of_a_kill_of_the_parent(
    family: subprocess.Popen[bytes],
) -> None:
    members = grown(family)
    family.send_signal(signal.SIGKILL)
    family.wait()
    assert until(lambda: not alive(members), 2), alive(members)


def test_sigterm_to_the_guard_ends_the_whole_family(family: subprocess.Popen[bytes]) -> None:
    members = grown(family)
    members[0].send_signal(signal.SIGTERM)
    assert until(lambda: not alive(members), 2), alive(members)


def test_a_kill_of_the_guard_itself_ends_the_server(family: subprocess.Popen[bytes]) -> None:
    guarding, server = grown(family)[:2]
    guarding.kill()
    assert until(lambda: not alive([server]), 1)


def test_what_a_server_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    ended = subprocess.run(
        [*GUARD, "sh", "-c", f"setsid sleep 300 & echo $! > {left}; exit 5"], check=False, timeout=10
    )
    assert ended.returncode == 5
    assert not psutil.pid_exists(int(left.read_text()))


def test_the_exit_code_is_passed_on() -> None:
    def code(*command: str) -> int:
        return subprocess.run([*GUARD, *command], check=False, capture_output=True, timeout=10).returncode

    assert code("true") == 0
    assert code("sh", "-c", "exit 7") == 7
    assert code("sh", "-c", "kill -9 $$") == 128 + 9
    assert code("no-such-program") == 127


def test_input_and_output_are_the_commands_own() -> None:
    ended = subprocess.run(
        [*GUARD, "tr", "a-z", "A-Z"], input=b"hello", capture_output=True, check=True, timeout=10
    )
    assert ended.stdout == b"HELLO"


def test_a_guard_whose_parent_is_gone_already_starts_nothing(tmp_path: Path) -> None:
    command = [
        *GUARD[:-1],
        "--parent",
        "1" if os.getpid() != 1 else "2",
        "--",
        "touch",
        str(tmp_path / "started"),
    ]
    assert subprocess.run(command, check=False, timeout=10).returncode == 1
    assert not (tmp_path / "started").exists()


def test_it_runs_as_a_module_and_starts_fast() -> None:
    assert (
        subprocess.run(
            [sys.executable, "-m", "bot.tools.guard", "--", "true"], check=False, timeout=10
        ).returncode
        == 0
    )
    began = time.monotonic()
    for _ in range(5):
        subprocess.run([*GUARD, "true"], check=True, timeout=10)
    assert (time.monotonic() - began) / 5 < 0.5

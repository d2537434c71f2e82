"""One process at a time on an embedded database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.errors import Unusable
from bot.process_lock import ProcessLock

HOLDS = """
import sys
from pathlib import Path
from bot.process_lock import ProcessLock
ProcessLock(Path(sys.argv[1])).take()
print("held", flush=True)
sys.stdin.read()
"""


def holder(database: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_with_the_mend(tmp_path: Path) -> None:
    database = tmp_path / "watchkeeper.db"
    other = holder(database)
    with pytest.raises(Unusable) as refused:
        ProcessLock(database).take()
    other.communicate("")
    words = str(refused.value)
    assert words.startswith("DATABASE_URL: ")
    assert f"{database};" in words
    assert "stop it" in words
    assert "Postgres" in words
    assert "\n" not in words


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    other = holder(tmp_path / "watchkeeper.db")
    other.kill()
    other.communicate()
    lock = ProcessLock(tmp_path / "watchkeeper.db")
    lock.take()
    lock.release()


def test_a_lock_that_was_given_back_can_be_taken_again(tmp_path: Path) -> None:
    first, second = ProcessLock(tmp_path / "a.db"), ProcessLock(tmp_path / "a.db")
    first.take()
    with pytest.raises(Unusable):
        second.take()
    first.release()
    first.release()
    second.take()
    second.release()


def test_another_database_has_a_lock_of_its_own(tmp_path: Path) -> None:
    locks = [ProcessLock(tmp_path / name) for name in ("a.db", "b.db")]
    for lock in locks:
        lock.take()
    for lock in locks:
        lock.release()


def test_a_refused_lock_leaves_no_file_open(tmp_path: Path) -> None:
    first, second = ProcessLock(tmp_path / "a.db"), ProcessLock(tmp_path / "a.db")
    first.take()
    with pytest.raises(Unusable):
        second.take()
    second.release()
    with pytest.raises(Unusable):
        second.take()
    first.release()

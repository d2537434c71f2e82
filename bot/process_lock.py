"""One process at a time on an embedded database: a lock on a file beside it.

The system releases it with us, however we end.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from bot.errors import Unusable


class ProcessLock:
    """Held from `take` to the end of the process or `release`."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}.lock")
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock; raises Unusable with the mend when another process holds it."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise Unusable(
                f"DATABASE_URL: another process uses {self._path.with_suffix('')}; stop it, "
                "or use Postgres, which serves several"
            ) from None

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

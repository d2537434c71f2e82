"""The files of a runbook folder: which there are, and their text, read so that nothing outside is reachable.

Rule 1: a name is never joined to the folder's path; it is looked up among the files that were found.
Rule 2: a link is followed only to a file inside the folder; a folder that is a link is not entered.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = frozenset({".md", ".markdown"})
MOST_FILES = 2_000
LARGEST_FILE = 512_000  # bytes; of a longer one the rest is left out
MOST_FOLDERS = 2_000


class Unreadable(Exception):
    """The folder or a file in it cannot be read."""


@dataclass(frozen=True, slots=True)
class Runbook:
    """One file; `name` is its path from the folder, with slashes."""

    name: str
    text: str
    modified: float
    whole: bool = True


class Folder:
    """Reads runbooks, each again only when it has changed. Blocking: call it from a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[tuple[int, int, int], Runbook]] = {}

    def names(self) -> dict[str, Path]:
        """Every runbook's name, and where it lies."""
        root = Path(os.path.realpath(self._path))
        if not root.is_dir():
            raise Unreadable(f"{self._path} is no folder")
        return dict(sorted(_found(root)))

    def all(self, stop: Callable[[], bool]) -> list[Runbook]:
        """All that can be read, until `stop` says so."""
        found = []
        for name, path in self.names().items():
            if stop():
                break
            try:
                found.append(self._read(name, path))
            except (OSError, Unreadable):
                continue  # gone meanwhile, or not ours to read
        return found

    def one(self, name: str) -> Runbook | None:
        """The runbook of this very name; None when there is none."""
        path = self.names().get(name)
        if path is None:
            return None
        try:
            return self._read(name, path)
        except OSError as error:
            raise Unreadable(f"{name} cannot be read ({error.strerror})") from error

    def _read(self, name: str, path: Path) -> Runbook:
        # Not to block on a pipe, and not to follow a link that took the file's place since it was looked at.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise Unreadable(f"{name} is no file")
            sign = (state.st_ino, state.st_mtime_ns, state.st_size)
            known = self._known.get(name)
            if known is not None and known[0] == sign:
                return known[1]
            raw = file.read(LARGEST_FILE + 1)
        text = raw[:LARGEST_FILE].decode("utf-8", errors="replace").removeprefix("\ufeff")
        runbook = Runbook(name, text, state.st_mtime, whole=len(raw) <= LARGEST_FILE)
        self._known[name] = (sign, runbook)
        return runbook


def _found(root: Path) -> Iterator[tuple[str, Path]]:
    """Names with real paths, all of them inside; a link that leads out is as if it were not there."""
    count = 0
    for number, (folder, folders, files) in enumerate(os.walk(root, followlinks=False)):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            path = Path(folder, file)
            if path.suffix.lower() not in SUFFIXES or file.startswith("."):
                continue
            real = Path(os.path.realpath(path))
            if real.is_relative_to(root) and real.is_file():
                yield path.relative_to(root).as_posix(), real
                count += 1
        if count >= MOST_FILES or number >= MOST_FOLDERS:
            return

"""The history of a repository as values: commits with their files, and tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.tools.git import DIFF, Git

# A NUL cannot stand in a commit, so no author and no subject can pretend to be another field.
_FIELDS = ("%H", "%P", "%an", "%ct", "%D", "%s")
_FORMAT = "%x00".join(_FIELDS)
_HASH = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; `at` is when it was committed."""

    hash: str
    parents: tuple[str, ...]
    author: str
    at: float
    names: tuple[str, ...]
    subject: str

    @property
    def is_merge(self) -> bool:
        """Whether it has more than one parent."""
        return len(self.parents) > 1


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag, and the commit it names; `at` is when it was made."""

    name: str
    at: float
    commit: str
    subject: str


async def commits(
    git: Git, tip: str, period: tuple[float, float], most: int, *, path: str = "", merges: bool = False
) -> list[Commit]:
    """The newest commits of a time range, up to `most`."""
    start, end = period
    options = [f"--max-count={most}", f"--since=@{int(start)} +0000", f"--until=@{int(end)} +0000"]
    options += ["--merges"] if merges else []
    told = await git.run(
        "log", "-z", "--no-show-signature", "--decorate=short", f"--format=tformat:{_FORMAT}", *options,
        "--end-of-options", tip, "--", *([path] if path else []),
    )  # fmt: skip
    parts = told.split("\0")
    width = len(_FIELDS)
    return [_commit(parts[at : at + width]) for at in range(0, len(parts) - width + 1, width)]


async def one(git: Git, commit: str) -> tuple[Commit, str]:
    """A commit and its whole message."""
    told = await git.run(
        "log", "-z", "--no-show-signature", "--decorate=short", "--max-count=1",
        f"--format=tformat:{_FORMAT}%x00%B", "--end-of-options", commit, "--",
    )  # fmt: skip
    parts = told.split("\0")
    return _commit(parts[: len(_FIELDS)]), parts[len(_FIELDS)]


async def files(git: Git, found: Sequence[Commit]) -> dict[str, list[tuple[str, str]]]:
    """Status letter and path of each file that a commit changed; of a merge, against its first parent."""
    if not found:
        return {}
    told = await git.run(
        "log", "-z", "--no-walk=unsorted", "--no-show-signature", "--format=tformat:%H", "--name-status",
        "--no-renames", *DIFF, "--end-of-options", *(commit.hash for commit in found), "--",
    )  # fmt: skip
    changed: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    parts = iter(told.split("\0"))
    for part in parts:
        word = part.strip("\n")
        if _HASH.fullmatch(word):
            current = changed.setdefault(word, [])
        elif len(word) == 1 and (path := next(parts, None)) is not None:
            current.append((word, path))
    return changed


async def tags(git: Git, period: tuple[float, float]) -> list[Tag]:
    """The tags that were made in a time range, the newest first."""
    told = await git.run(
        "for-each-ref", "--sort=-creatordate",
        "--format=%(refname:short)%00%(creatordate:unix)%00%(objectname)%00%(*objectname)%00%(contents:subject)",
        "refs/tags",
    )  # fmt: skip
    found = []
    for line in told.splitlines():
        name, at, target, peeled, subject = [*line.split("\0"), "", "", "", ""][:5]
        if at.isdigit() and period[0] <= float(at) <= period[1]:
            found.append(Tag(name, float(at), peeled or target, subject))
    return found


def _commit(parts: Sequence[str]) -> Commit:
    name, parents, author, at, names, subject = parts
    known = tuple(each.strip() for each in names.split(",") if each.strip())
    return Commit(name.strip("\n"), tuple(parents.split()), author, float(at), known, subject)

"""The deploy history: every commit on main is one deploy, its committer date is when it went out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bot.incident.commits import DAY, ORDINARY
from bot.incident.gitobjects import Objects
from bot.incident.shop_files import FILES
from bot.incident.story import Change, Story

FIRST = {"gateway": "5.10.2", "checkout": "2.28.4", "stock": "3.5.1", "database": "14.9-2"}
FIRST_MINUTE = -10.4 * DAY
OURS = "shop-deploys"  # marks a `.git` folder that may be written anew
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"


@dataclass(frozen=True)
class Deploy:
    """One version of one service, from when on, and its commit."""

    at: float
    service: str
    version: str
    commit: str


@dataclass(frozen=True)
class History:
    """The deploys in order, and what Git needs to show them."""

    deploys: tuple[Deploy, ...]
    objects: Objects
    files: dict[str, str]
    head: str


@lru_cache(maxsize=8)
def history(story: Story) -> History:
    """The deploys of a story."""
    objects, files = Objects(), dict(FILES)
    start = int(story.moment(FIRST_MINUTE))
    text = "Move the shop into one place\n"
    first = objects.commit(objects.tree(files), None, author="Lea Sommer", dates=(start, start), text=text)
    head, deploys = first, [Deploy(start, name, version, first) for name, version in FIRST.items()]
    for change in sorted((*ORDINARY, *story.scenario.changes), key=lambda each: each.minute):
        _apply(files, change)
        at = int(story.moment(change.minute))
        written = int(story.moment(change.minute - 95))
        head = objects.commit(
            objects.tree(files), head, author=change.author, dates=(written, at), text=_text(change)
        )
        deploys.append(Deploy(at, change.service, change.version, head))
    return History(tuple(deploys), objects, files, head)


def deploys(story: Story) -> Sequence[Deploy]:
    """Every deploy, the oldest first."""
    return history(story).deploys


def running(story: Story, service: str, at: float) -> Deploy:
    """What runs at a moment; the first version before all history."""
    found = [each for each in deploys(story) if each.service == service]
    return next((each for each in reversed(found) if each.at <= at), found[0])


def make_repository(story: Story, folder: Path) -> None:
    """Write the history as a Git repository; one that we wrote is replaced, nothing else is touched."""
    git, told = folder / ".git", history(story)
    if git.exists() and not (git / OURS).exists():
        raise FileExistsError(f"{folder} is another repository; choose an empty folder")
    if git.exists():
        shutil.rmtree(git)
    for name in ("objects", "refs/heads", "refs/tags"):
        (git / name).mkdir(parents=True)
    (git / OURS).write_text(
        "Made by Watchkeeper's bundled incident; may be written anew.\n", encoding="utf-8"
    )
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (git / "config").write_text(CONFIG, encoding="utf-8")
    (git / "refs/heads/main").write_text(told.head + "\n", encoding="utf-8")
    told.objects.write(git)
    for each in told.deploys:
        tag = git / "refs/tags" / each.service / each.version
        tag.parent.mkdir(exist_ok=True)
        tag.write_text(each.commit + "\n", encoding="utf-8")
    for path, text in told.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if program := shutil.which("git"):  # the index, so that the files count as unchanged; history needs none
        subprocess.run(
            [program, "-C", str(folder), "read-tree", "HEAD"], check=False, capture_output=True, timeout=30
        )


def _apply(files: dict[str, str], change: Change) -> None:
    for edit in change.edits:
        if edit.old not in files.get(edit.path, ""):
            raise ValueError(f"{change.service} {change.version}: {edit.path} does not hold {edit.old!r}")
        files[edit.path] = files.get(edit.path, "").replace(edit.old, edit.new, 1) if edit.old else edit.new


def _text(change: Change) -> str:
    parts = [change.subject, change.body, f"Service: {change.service}\nVersion: {change.version}"]
    return "\n\n".join(part for part in parts if part) + "\n"

"""The deploy tools (`[tools.deploys] repository = "…"`): what changed and when, from a Git history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.tools.clean import one_line
from bot.tools.deploys_history import Commit, Tag, commits, files, one, tags
from bot.tools.git import DIFF, Git, GitFailed
from bot.tools.prometheus_time import TIME_WORDS, iso, moment, span
from bot.tools.provider import CallContext, ToolOutput
from bot.tools.specs import reader
from core.history import Json
from core.tools import ToolSpec

LIST = "deploys_list"
SHOW = "deploys_show"
USUAL, MOST = 30, 200  # commits
MOST_FILES = 8  # of one commit in the list
LONGEST_DIFF = 30_000  # characters
READY_S = 5.0

Arguments = Mapping[str, Json]


class DeploysProvider:
    """A `Provider` for one repository."""

    name = "deploys"

    def __init__(self, repository: Path, timeout_s: float = 30.0) -> None:
        self._git = Git(repository)
        self._specs = _specs(timeout_s)

    async def start(self) -> None:
        """Nothing to do: git is started for each call."""

    async def ready(self, deadline: float) -> str | None:
        """Whether the repository can be read."""
        try:
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + READY_S)):
                await self._git.commit("HEAD")
        except GitFailed as failed:
            return f"deploys: {failed}"
        except TimeoutError:
            return f"deploys: git gave no answer within {READY_S:g} s"
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """The two tools."""
        return self._specs

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Run one of the two; when it is cancelled, git is killed."""
        try:
            return await (self._list(arguments) if tool == LIST else self._show(arguments))
        except GitFailed as failed:
            return ToolOutput(str(failed), is_error=True, query=_query(tool, arguments))

    async def close(self) -> None:
        """Nothing to give back."""

    async def _list(self, arguments: Arguments) -> ToolOutput:
        now = time.time()
        period = _time(arguments, "start", "-24h", now), _time(arguments, "end", "now", now)
        if period[1] <= period[0]:
            raise GitFailed(f"the range is empty: start {iso(period[0])} is not before end {iso(period[1])}")
        most, path = int(arguments.get("limit", USUAL)), _path(arguments)
        tip = await self._git.commit(str(arguments.get("ref", "HEAD")))
        found = await commits(
            self._git, tip, period, most + 1, path=path, merges=bool(arguments.get("merges_only"))
        )
        changed, made = await asyncio.gather(files(self._git, found[:most]), tags(self._git, period))
        lines = [f"{len(found[:most])} commits and {len(made)} tags, {span(*period)}, the newest first:"]
        lines += [_tag(tag) for tag in made[:most]]
        lines += [_line(commit, changed.get(commit.hash, ())) for commit in found[:most]]
        if len(found) > most:
            lines.append("Older commits in this range are not shown; use a path or a shorter range.")
        if not found and not made:
            newest = await commits(self._git, tip, (0, now + 86_400), 1)
            last = _line(newest[0], ()) if newest else "none"
            lines = [f"nothing in {span(*period)}; the last commit before now: {last}"]
        return ToolOutput("\n".join(lines), query=_query(LIST, arguments), time_range=span(*period))

    async def _show(self, arguments: Arguments) -> ToolOutput:
        commit, message = await one(self._git, await self._git.commit(str(arguments["commit"])))
        path = _path(arguments)
        told = await self._git.run(
            "show", "--no-show-signature", "--format=", "--stat=120,100,60", "--patch", *DIFF,
            "--end-of-options", commit.hash, "--", *([path] if path else []),
        )  # fmt: skip
        lines = [
            f"{_line(commit, ())}\nparents: {', '.join(each[:12] for each in commit.parents) or 'none'}",
            message.strip()[:4_000],
            told[:LONGEST_DIFF] or ("(it did not touch this path)" if path else "(no file was changed)"),
        ]
        if len(told) > LONGEST_DIFF:
            lines.append(f"[the first {LONGEST_DIFF} characters of the diff; give a path to see one file]")
        query = f"commit {commit.hash[:12]}{f' {path}' if path else ''}: {one_line(commit.subject, 120)}"
        return ToolOutput("\n\n".join(lines), query=query, time_range=iso(commit.at))


def _specs(timeout_s: float) -> tuple[ToolSpec, ...]:
    when: Json = {"type": ["string", "number"]}
    path: Json = {"type": "string", "minLength": 1, "maxLength": 500}
    revision: Json = {"type": "string", "minLength": 1, "maxLength": 200}
    return (
        reader(
            LIST,
            timeout_s,
            "What was changed and deployed in a time range: commits, merges and tags of the repository with "
            "time, author, subject and files. Compare their times with the beginning of the symptom.",
            [],
            start={
                **when,
                "description": 'Begin; default "-24h". RFC 3339, epoch seconds or relative like "-6h".',
            },
            end={**when, "description": "End; default now."},
            ref={**revision, "description": "Branch, tag or hash whose history is listed; default HEAD."},
            path={**path, "description": "Only commits that touched this file or folder."},
            merges_only={"type": "boolean", "description": "Only merges."},
            limit={"type": "integer", "minimum": 1, "maximum": MOST, "description": f"Default {USUAL}."},
        ),
        reader(
            SHOW,
            timeout_s,
            "One commit: its message, the files it changed, and its diff (of a merge, all that it brought).",
            ["commit"],
            commit={**revision, "description": "Hash, tag or branch."},
            path={**path, "description": "Only this file or folder of the diff."},
        ),
    )


def _time(arguments: Arguments, key: str, usual: str, now: float) -> float:
    text = str(arguments.get(key, usual))
    at = moment(text, now)
    if at is None:
        raise GitFailed(f"{key}: {one_line(text, 60)!r} is no time; use {TIME_WORDS}")
    return at


def _path(arguments: Arguments) -> str:
    path = str(arguments.get("path", ""))
    if "\0" in path or path.startswith("/") or ".." in path.split("/"):
        raise GitFailed(
            f"{one_line(path, 60)!r} is no path in the repository; give it from the repository's top"
        )
    return path


def _query(tool: str, arguments: Arguments) -> str:
    shown = ", ".join(f"{key} {arguments[key]}" for key in ("ref", "commit", "path") if key in arguments)
    return one_line(f"{tool}{f' {shown}' if shown else ''}")


def _tag(tag: Tag) -> str:
    return f"{iso(tag.at)} tag {tag.name} at {tag.commit[:12]}: {one_line(tag.subject, 200)}"


def _line(commit: Commit, changed: Sequence[tuple[str, str]]) -> str:
    kind = "merge" if commit.is_merge else "commit"
    names = f" ({', '.join(commit.names)})" if commit.names else ""
    subject = f"{one_line(commit.author, 60)}: {one_line(commit.subject, 200)}"
    shown = ", ".join(f"{status} {path}" for status, path in changed[:MOST_FILES])
    more = f" and {len(changed) - MOST_FILES} more" if len(changed) > MOST_FILES else ""
    touched = f"\n    {one_line(shown, 600)}{more}" if shown else ""
    return f"{iso(commit.at)} {kind} {commit.hash[:12]}{names} {subject}{touched}"

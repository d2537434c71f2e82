"""Runs git on one repository to read its history, and nothing else.

Rule 1: no shell, and nothing that the model wrote stands where git looks for options: a revision is resolved
to a hash first (after `--end-of-options`), a path stands after `--` and is taken literally.
Rule 2: neither the environment nor the repository's configuration can make git start another program: hooks,
pagers, external diffs, text conversions, signature checks and every transport are off
(https://git-scm.com/docs/git#_environment_variables, https://git-scm.com/docs/git-config).
Rule 3: git and its children end with the call, and what they say is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from pathlib import Path

MOST_BYTES = 2_000_000
MOST_WORDS = 20_000  # bytes of complaint
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/~^+@#=-]{0,199}")
_OFF = (
    "safe.directory=*",  # the operator named this repository; whose files they are does not matter
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "diff.external=",
    "diff.orderFile=/dev/null",
    "log.showSignature=false",
    "log.mailmap=false",
    "protocol.allow=never",
)
DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--diff-merges=first-parent")


class GitFailed(Exception):
    """Git did not do it. The message says why, and what to try; `fact` is only why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.fact = message.partition("; ")[0]


class Git:
    """One repository: a working copy or a bare one."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository

    async def commit(self, revision: str) -> str:
        """The full hash of a branch, tag, or short hash."""
        if not _REVISION.fullmatch(revision) or ".." in revision:
            raise GitFailed(f"{revision[:60]!r} is no revision; use a hash, a tag or a branch")
        try:
            found = await self.run(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
            )
        except GitFailed as failed:
            if str(failed) != "git failed":
                raise
            raise GitFailed(f"there is no commit {revision!r}; deploys_list shows hashes and tags") from None
        return found.strip()

    async def run(self, command: str, *arguments: str) -> str:
        """What git prints, at most `MOST_BYTES` of it. Options are ours, revisions are hashes: see rule 1."""
        spawn = asyncio.create_task(self._spawned(command, arguments))
        try:
            process = await asyncio.shield(spawn)
        except asyncio.CancelledError:
            await _end(await spawn)  # it may have begun, and so may its children
            raise
        except FileNotFoundError:
            raise GitFailed(
                "git is not installed where Watchkeeper runs; a person has to install it"
            ) from None
        assert process.stdout is not None
        assert process.stderr is not None
        said = asyncio.create_task(_first(process.stderr, MOST_WORDS))
        try:
            out = await _read(process.stdout, MOST_BYTES)
            if len(out) < MOST_BYTES:
                await process.wait()
        finally:
            await _end(process)
            await asyncio.wait({said})
        if process.returncode not in (0, -signal.SIGKILL):
            raise GitFailed(_words(said.result().decode(errors="replace"), self._repository))
        return out.decode(errors="replace")

    async def _spawned(self, command: str, arguments: tuple[str, ...]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "git", "--no-pager", "--literal-pathspecs", *(word for off in _OFF for word in ("-c", off)),
            "-C", str(self._repository), command, *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment(),
            start_new_session=True,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        """Ours, and none of what is set outside: no GIT_…, no LD_PRELOAD, no PAGER, no secrets."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self._repository.parent.resolve()),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_PAGER": "cat",
        }


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < most and (piece := await stream.read(min(65_536, most - size))):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


async def _first(stream: asyncio.StreamReader, most: int) -> bytes:
    """The first bytes; the rest is taken too, so that nobody waits for us to take it."""
    kept = await _read(stream, most)
    while await stream.read(65_536):
        pass
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the whole group, then take what is left of its output so that the pipe closes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        while await process.stdout.read(65_536):
            pass
    await process.wait()


def _words(said: str, repository: Path) -> str:
    line = next((each for each in said.splitlines() if each.strip()), "").removeprefix("fatal: ")
    if "not a git repository" in said or "cannot change to" in said:
        return f"{repository} is no Git repository; a person has to correct repository in [tools.deploys]"
    if "does not have any commits" in said:
        return "the repository has no commits yet"
    return f"git: {line[:300]}" if line else "git failed"

"""Deploys are read from real repositories, and nothing that anybody wrote starts anything."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bot.ports import ToolCall
from bot.tools import git as git_module
from bot.tools.deploys import DeploysProvider
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass

NOW = time.time()
NAP = f"97.{os.getpid()}"  # how to tell the sleepers of this run from those of another
Run = Callable[..., str]


def runner(folder: Path) -> Run:
    """Runs git in the folder as its author, so many hours ago."""

    def run(*arguments: str, hours: float = 0, name: str = "Ada") -> str:
        when = f"@{int(NOW - hours * 3600)} +0000"
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", name), ("EMAIL", "ada@example.com"), ("DATE", when))}  # fmt: skip
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        ran = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout.strip()

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    root.mkdir()
    run = runner(root)
    run("init", "-q", "-b", "main")
    (root / "pool.toml").write_text("size = 20\n")
    run("add", ".")
    run("commit", "-q", "-m", "Begin", hours=100)
    (root / "pool.toml").write_text("size = 2\n")
    run("commit", "-q", "-am", "Lower the pool size\n\nTo save memory.", hours=3, name="Grace")
    run("tag", "-a", "v1.2.0", "-m", "Release 1.2.0", hours=2)
    run("checkout", "-q", "-b", "feature")
    (root / "src").mkdir()
    (root / "src" / "ü b.py").write_text("x = 1\n")
    run("add", ".")
    run("commit", "-q", "-m", "Add a feature", hours=2)
    run("checkout", "-q", "main")
    run("merge", "-q", "--no-ff", "feature", "-m", "Merge feature", hours=1)
    return root


class Tools:
    """A tool box that holds only deploys."""

    def __init__(self, folder: Path) -> None:
        self.box = ToolBox([DeploysProvider(folder)], Redactor([]))
        self.hurry = asyncio.Event()

    async def __call__(self, tool: str, **arguments: Json) -> CallResult:
        return await self.box.run(ToolCall("call_1", f"deploys_{tool}", arguments), self.hurry)


@pytest.fixture
def tools(folder: Path) -> Tools:
    return Tools(folder)


async def test_both_tools_only_read_and_may_be_interrupted(tools: Tools) -> None:
    assert [spec.name for spec in tools.box.specs()] == ["deploys_list", "deploys_show"]
    assert all(spec.tool_class is ToolClass.READ_ONLY and spec.interruptible for spec in tools.box.specs())
    assert await tools.box.ready() == []


async def test_a_day_is_listed_with_merges_tags_authors_and_files(tools: Tools) -> None:
    result = await tools("list")
    assert result.outcome is Outcome.OK, result.text
    assert result.text.startswith("3 commits and 1 tags, ")
    assert " tag v1.2.0 at " in result.text
    assert ": Release 1.2.0" in result.text
    assert " merge " in result.text
    assert " (HEAD -> main) Ada: Merge feature\n    A src/ü b.py" in result.text
    assert "Grace: Lower the pool size\n    M pool.toml" in result.text
    assert "Begin" not in result.text
    assert " to " in result.time_range
    assert result.query == "deploys_list"


async def test_a_list_may_be_of_a_path_a_branch_or_merges_only(tools: Tools) -> None:
    assert (await tools("list", path="pool.toml")).text.startswith("1 commits")
    assert "Merge feature" not in (await tools("list", ref="feature")).text
    only = await tools("list", merges_only=True)
    assert only.text.startswith("1 commits and 1 tags")
    assert "Older commits in this range are not shown" in (await tools("list", limit=1)).text


async def test_a_quiet_time_names_the_last_commit(tools: Tools) -> None:
    result = await tools("list", start="-30m")
    assert result.text.startswith("nothing in ")
    assert "Merge feature" in result.text


async def test_one_commit_is_shown_with_message_and_diff(tools: Tools) -> None:
    result = await tools("show", commit="v1.2.0")
    assert "To save memory." in result.text
    assert "-size = 20\n+size = 2" in result.text
    assert result.query.endswith(": Lower the pool size")
    assert result.time_range.endswith("Z")


async def test_a_merge_shows_what_it_brought(tools: Tools) -> None:
    result = await tools("show", commit="main")
    assert "+x = 1" in result.text
    assert "(it did not touch this path)" in (await tools("show", commit="main", path="pool.toml")).text


async def test_a_long_diff_is_cut_and_says_how_to_see_one_file(tools: Tools, folder: Path) -> None:
    (folder / "big.txt").write_text("line\n" * 2_000_000)
    run = runner(folder)
    run("add", ".")
    run("commit", "-q", "-m", "Big")
    result = await tools("show", commit="HEAD")
    assert result.outcome is Outcome.OK
    assert "give a path to see one file" in result.text


@pytest.mark.parametrize(
    "revision",
    [
        "--help",
        "--output=/tmp/owned",
        "-O/etc/passwd",
        "--exec=touch owned",
        "--upload-pack=touch owned",
        "HEAD..main",
        "HEAD...main",
        "^main",
        "$(touch owned)",
        "main; touch owned",
        "main\n--output=owned",
        "main\x00--output=owned",
        ":/Merge",
        "HEAD^{/Merge}",
        "main@{1}",
        "main:pool.toml",
        "../../etc/passwd",
        "no-such-branch",
        " main",
    ],
)
async def test_a_hostile_revision_is_refused_and_does_nothing(
    tools: Tools, folder: Path, revision: str
) -> None:
    before = sorted(folder.parent.rglob("owned*"))
    for result in (await tools("show", commit=revision), await tools("list", ref=revision)):
        assert result.outcome is Outcome.ERROR
        assert "is no revision; use a hash" in result.text or "there is no commit" in result.text
    assert sorted(folder.parent.rglob("owned*")) == before


@pytest.mark.parametrize(
    "path", ["--output=owned", ":(exclude)pool.toml", ":!pool.toml", "*", "$(touch owned)"]
)
async def test_a_hostile_path_is_only_a_path_that_is_not_there(tools: Tools, folder: Path, path: str) -> None:
    result = await tools("list", path=path)
    assert result.outcome is Outcome.OK
    assert "0 commits and 1 tags" in result.text
    assert not list(folder.rglob("owned*"))


@pytest.mark.parametrize("path", ["/etc/passwd", "../other", "a/../../b"])
async def test_a_path_that_leads_out_is_refused(tools: Tools, path: str) -> None:
    assert "is no path in the repository" in (await tools("show", commit="main", path=path)).text


async def test_nothing_that_the_repository_configures_is_started(
    tools: Tools, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = folder.parent / "owned"
    program = folder.parent / "evil"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    run = runner(folder)
    for key in ("core.pager", "core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv",
                "gpg.program", "core.sshCommand", "core.editor", "filter.x.smudge", "pager.log"):  # fmt: skip
        run("config", key, str(program))
    run("config", "log.showSignature", "true")
    run("config", "core.hooksPath", str(folder.parent))
    (folder / ".git" / "info" / "attributes").write_text("* diff=x filter=x\n")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR"):
        monkeypatch.setenv(name, str(program))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.external")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(program))
    assert (await tools("list")).outcome is Outcome.OK
    assert "-size = 20\n+size = 2" in (await tools("show", commit="v1.2.0")).text
    assert not mark.exists()


async def test_hostile_authors_and_subjects_stay_in_their_fields(tools: Tools, folder: Path) -> None:
    runner(folder)(
        "commit", "-q", "--allow-empty", "-m", "Fix\x1e\x1b[31mred %H %x00 \u202e", name="Eve\x1b]0;x\x07 %n",
    )  # fmt: skip
    text = (await tools("list")).text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "%H %x00" in text
    assert text.startswith("4 commits and 1 tags")


async def test_a_repository_of_another_owner_and_a_bare_one_can_be_read(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(folder), str(bare)], check=True)
    if os.getuid() == 0:
        for path in [bare, *bare.rglob("*")]:
            os.chown(path, 12345, 12345)
    assert (await Tools(bare)("list")).text.startswith("3 commits")


async def test_a_folder_inside_another_repository_is_not_taken_for_it(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    result = await Tools(inner)("list")
    assert result.outcome is Outcome.ERROR
    assert "is no Git repository; a person has to correct repository in [tools.deploys]" in result.text


async def test_an_empty_repository_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    result = await Tools(tmp_path)("list")
    assert result.outcome is Outcome.ERROR
    assert "there is no commit 'HEAD'" in result.text


async def test_a_call_in_a_hurry_kills_git_and_its_children(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\nsleep {NAP} &\necho started >&2\nsleep {NAP}\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    tools = Tools(folder)
    asking = asyncio.create_task(tools("list"))
    while len(sleepers()) < 2:
        await asyncio.sleep(0.02)
    tools.hurry.set()
    result = await asking
    assert result.outcome is Outcome.STOPPED
    assert sleepers() == []


async def test_a_call_that_is_stopped_while_git_starts_leaves_nothing_behind(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\nsleep {NAP} &\nsleep {NAP}\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for rounds in range(30):
        asking = asyncio.create_task(git_module.Git(folder).run("log"))
        for _ in range(rounds // 2):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert sleepers() == []


def sleepers() -> list[psutil.Process]:
    """The processes of the test above."""
    return [
        each
        for each in psutil.process_iter(["cmdline", "status"])
        if each.info["cmdline"] == ["sleep", NAP] and each.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def test_without_git_the_mend_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "git is not installed where Watchkeeper runs" in (await Tools(folder)("list")).text


def test_no_secret_of_ours_is_in_gits_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-secret")
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    given = git_module.Git(folder).environment()
    assert not {"SLACK_BOT_TOKEN", "LD_PRELOAD", "GIT_DIR"} & set(given)

"""Runbooks are found by their words and read by their names, and nothing outside the folder ever is."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from bot.ports import ToolCall
from bot.tools.registry import ToolBox
from bot.tools.runbooks import LONGEST_READ, RunbooksProvider
from bot.tools.runbooks_folder import LARGEST_FILE, Folder
from bot.tools.runbooks_search import sections
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass

POOL = """# Database connection pool
What to do when checkout waits for connections.

## Symptoms
Errors like `no connection within 500 ms`.

## Mend
```sh
# not a heading
kubectl rollout undo deploy/checkout
```
### By hand
Raise `max_connections`.

## Owners
The payments team.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "runbooks"
    (root / "db").mkdir(parents=True)
    (root / "db" / "pool.md").write_text(POOL)
    (root / "certificates.md").write_text(
        "# Certificates\nRenew with the issuer. The gateway reloads them.\n"
    )
    (root / "gateway.md").write_text("# Gateway\nThe gateway has a pool of workers, see db/pool.md.\n")
    (root / "notes.txt").write_text("not a runbook")
    (root / ".hidden.md").write_text("# hidden connection pool")
    (tmp_path / "secret.md").write_text("# secret connection pool")
    return root


class Tools:
    """A tool box that holds only runbooks."""

    def __init__(self, folder: Path) -> None:
        self.box = ToolBox([RunbooksProvider(folder)], Redactor([]))
        self.hurry = asyncio.Event()

    async def __call__(self, tool: str, **arguments: Json) -> CallResult:
        return await self.box.run(ToolCall("call_1", f"runbook_{tool}", arguments), self.hurry)


@pytest.fixture
def tools(folder: Path) -> Tools:
    return Tools(folder)


async def test_both_tools_only_read_and_may_be_interrupted(tools: Tools) -> None:
    assert [spec.name for spec in tools.box.specs()] == ["runbook_search", "runbook_read"]
    assert all(spec.tool_class is ToolClass.READ_ONLY and spec.interruptible for spec in tools.box.specs())
    assert await tools.box.ready() == []


async def test_the_best_runbook_comes_first_with_the_passage_that_fits(tools: Tools) -> None:
    result = await tools("search", words="no connection from the pools")
    assert result.outcome is Outcome.OK
    lines = result.text.splitlines()
    assert lines[0] == "2 of 3 runbooks, the best first:"
    assert lines[1].startswith("db/pool.md: Database connection pool (changed ")
    assert "Symptoms: Errors like `no connection within 500 ms`" in result.text
    assert lines[3].startswith("gateway.md: ")
    assert result.query == "runbooks: no connection from the pools"


async def test_without_words_all_are_listed(tools: Tools) -> None:
    listed = (await tools("search")).text.splitlines()
    assert listed == [
        "3 runbooks:",
        "certificates.md: Certificates",
        "db/pool.md: Database connection pool",
        "gateway.md: Gateway",
    ]


async def test_words_that_nobody_wrote_lead_to_the_list(tools: Tools) -> None:
    assert (
        "try others, such as a service's name. There are: certificates.md"
        in (await tools("search", words="zebra")).text
    )


async def test_a_runbook_is_read_whole_or_by_section(tools: Tools) -> None:
    whole = await tools("read", name="db/pool.md")
    assert POOL.strip() in whole.text
    part = await tools("read", name="db/pool.md", section="mend")
    assert "kubectl rollout undo" in part.text
    assert "### By hand" in part.text
    assert "Owners" not in part.text
    assert part.query == "runbook db/pool.md, mend"


async def test_a_section_that_is_not_there_leads_to_those_that_are(tools: Tools) -> None:
    result = await tools("read", name="db/pool.md", section="rollback")
    assert result.outcome is Outcome.ERROR
    assert "there are: Database connection pool, Symptoms, Mend, By hand, Owners" in result.text


async def test_a_name_that_is_nearly_right_is_mended(tools: Tools) -> None:
    assert "did you mean db/pool.md?" in (await tools("read", name="pool.md")).text


@pytest.mark.parametrize(
    "name",
    [
        "../secret.md",
        "db/../../secret.md",
        "/etc/passwd",
        "..%2fsecret.md",
        "db\\..\\..\\secret.md",
        "./certificates.md",
        "db//pool.md",
        "notes.txt",
        ".hidden.md",
        "certificates.md\x00",
        "~/secret.md",
        "link.md",
        "linked/secret.md",
        "pipe.md",
    ],
)
async def test_nothing_but_the_runbooks_can_be_read(tools: Tools, folder: Path, name: str) -> None:
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    (folder / "linked").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe.md")
    result = await tools("read", name=name)
    assert result.outcome is Outcome.ERROR
    assert "there is no runbook" in result.text
    assert "secret connection" not in (await tools("search", words="secret hidden connection")).text


async def test_a_link_to_another_runbook_of_the_folder_is_one(tools: Tools, folder: Path) -> None:
    (folder / "alias.md").symlink_to(folder / "db" / "pool.md")
    assert (await tools("read", name="alias.md")).outcome is Outcome.OK


async def test_a_long_runbook_is_cut_and_its_sections_are_listed(tools: Tools, folder: Path) -> None:
    (folder / "long.md").write_text("# Long\n" + "word " * 20_000 + "\n## The end\nlast words\n")
    result = await tools("read", name="long.md")
    assert f"[the first {LONGEST_READ} of 100" in result.text
    assert "The end" in result.text
    assert "last words" in (await tools("read", name="long.md", section="the end")).text
    (folder / "huge.md").write_bytes(b"# Huge\n" + b"\xff" * (LARGEST_FILE * 2))
    assert f"of more than {LARGEST_FILE} characters" in (await tools("read", name="huge.md")).text


async def test_a_runbook_that_was_changed_is_read_anew(tools: Tools, folder: Path) -> None:
    await tools("search", words="gateway")
    (folder / "gateway.md").write_text("# Gateway\nNow about lobsters.\n")
    assert "gateway.md" in (await tools("search", words="lobsters")).text


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    tools = Tools(tmp_path / "nothing")
    assert "is no folder" in (await tools.box.ready())[0]
    result = await tools("search", words="x")
    assert result.outcome is Outcome.ERROR
    assert "go on without it and say so" in result.text


def test_a_search_that_is_told_to_stop_reads_no_further_file(folder: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert Folder(folder).all(stop.is_set) == []


def test_a_hostile_text_is_parsed_in_no_time() -> None:
    began = time.perf_counter()
    for text in ("# " + " #" * 100_000, "#" * 200_000, "`" * 200_000, "# a\n" * 50_000):
        sections(text)
    assert time.perf_counter() - began < 2

"""The runbook tools (`[tools.runbooks] folder = "…"`): what people wrote down, found and read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from bot.tools.clean import one_line
from bot.tools.prometheus_time import iso
from bot.tools.provider import CallContext, ToolOutput
from bot.tools.runbooks_folder import LARGEST_FILE, Folder, Runbook, Unreadable
from bot.tools.runbooks_search import Section, search, sections, title
from bot.tools.specs import reader
from core.history import Json
from core.tools import ToolSpec

SEARCH = "runbook_search"
READ = "runbook_read"
MOST_HITS = 8
LONGEST_READ = 24_000  # characters; of a longer runbook the sections are listed

T = TypeVar("T")


class RunbooksProvider:
    """A `Provider` for one folder of Markdown."""

    name = "runbooks"

    def __init__(self, folder: Path, timeout_s: float = 20.0) -> None:
        self._folder = Folder(folder)
        self._timeout_s = timeout_s

    async def start(self) -> None:
        """Nothing to do: files are read when asked for."""

    async def ready(self, deadline: float) -> str | None:
        """Whether the folder can be read."""
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.to_thread(self._folder.names)
        except Unreadable as fault:
            return f"runbooks: {fault}"
        except TimeoutError:
            return "runbooks: the folder could not be read in time"
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """The two tools."""
        return (
            reader(
                SEARCH,
                self._timeout_s,
                "Search the runbooks: what people wrote down about services, alerts and earlier incidents. "
                "Returns names, titles and the passage that fits best. Without words, lists all.",
                [],
                words={"type": "string", "maxLength": 500, "description": "Words to look for, any of them."},
            ),
            reader(
                READ,
                self._timeout_s,
                "Read one runbook, or one section of it. What it says may be out of date: check it.",
                ["name"],
                name={"type": "string", "minLength": 1, "description": "A name that runbook_search gave."},
                section={"type": "string", "description": "Only the section with this heading."},
            ),
        )

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Run one of the two; a cancelled one stops at the next file."""
        try:
            if tool == SEARCH:
                return await self._search(str(arguments.get("words", "")))
            return await self._read(str(arguments["name"]), str(arguments.get("section", "")))
        except Unreadable as fault:
            return ToolOutput(f"{fault}; go on without it and say so", is_error=True)

    async def close(self) -> None:
        """Nothing to give back."""

    async def _search(self, wanted: str) -> ToolOutput:
        text = await _in_thread(lambda stop: _found(self._folder.all(stop), wanted))
        return ToolOutput(text, query=f"runbooks: {wanted}" if wanted else "runbooks")

    async def _read(self, name: str, section: str) -> ToolOutput:
        runbook = await _in_thread(lambda _: self._folder.one(name))
        if runbook is None:
            names = list(await _in_thread(lambda _: self._folder.names()))
            return ToolOutput(_no_runbook(name, names), is_error=True, query=f"runbook {name}")
        parts = sections(runbook.text)
        query = f"runbook {name}{f', {section}' if section else ''}"
        head = f"{runbook.name}: {title(runbook)} (last changed {iso(runbook.modified)})"
        if section:
            chosen = _section(parts, section)
            if chosen is None:
                return ToolOutput(_no_section(name, section, parts), is_error=True, query=query)
            return ToolOutput(f"{head}\n{chosen[:LONGEST_READ]}", query=query)
        return ToolOutput(f"{head}\n{_cut(runbook, parts)}", query=query)


async def _in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Work on files in a thread, which is told to stop when we are cancelled."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop.is_set)
    finally:
        stop.set()


def _found(runbooks: Sequence[Runbook], wanted: str) -> str:
    if not runbooks:
        return "there are no runbooks"
    if not wanted.strip():
        shown = [f"{each.name}: {one_line(title(each), 120)}" for each in runbooks[:100]]
        more = [f"and {len(runbooks) - 100} more; search by words"] if len(runbooks) > 100 else []
        return "\n".join([f"{len(runbooks)} runbooks:", *shown, *more])
    hits = search(runbooks, wanted, MOST_HITS)
    if not hits:
        names = ", ".join(each.name for each in runbooks[:30])
        return (
            f"no runbook holds any of these words; try others, such as a service's name. There are: {names}"
        )
    told = [f"{len(hits)} of {len(runbooks)} runbooks, the best first:"]
    for hit in hits:
        told.append(f"{hit.runbook.name}: {one_line(hit.title, 120)} (changed {iso(hit.runbook.modified)})")
        told.append(f"    {one_line(hit.heading, 120)}: {one_line(hit.snippet, 400)}")
    return "\n".join(told)


def _section(parts: Sequence[Section], wanted: str) -> str | None:
    """The section of this heading, with those below it."""
    lower = wanted.strip().lstrip("#").strip().lower()
    for match in (lambda text: text == lower, lambda text: lower in text):
        for place, part in enumerate(parts):
            if not part.level or not match(part.heading.lower()):
                continue
            below = parts[place + 1 :]
            end = next((n for n, each in enumerate(below) if each.level <= part.level), len(below))
            return "\n".join(_text(each) for each in [part, *below[:end]])
    return None


def _text(part: Section) -> str:
    return f"{'#' * part.level} {part.heading}\n{part.body}" if part.level else part.body


def _cut(runbook: Runbook, parts: Sequence[Section]) -> str:
    if len(runbook.text) <= LONGEST_READ:
        return runbook.text
    headings = "\n".join(f"{'  ' * each.level}{each.heading}" for each in parts if each.level)[:4_000]
    size = f"{len(runbook.text)}" if runbook.whole else f"more than {LARGEST_FILE}"
    return (
        f"{runbook.text[:LONGEST_READ]}\n[the first {LONGEST_READ} of {size} characters; "
        f"read the rest by section:]\n{headings}"
    )


def _no_runbook(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, n=3, cutoff=0.4) or [each for each in names if name in each][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names[:50]) or 'none'}"
    return f"there is no runbook {one_line(name, 100)!r}; {hint}"


def _no_section(name: str, section: str, parts: Sequence[Section]) -> str:
    headings = ", ".join(each.heading for each in parts if each.level)[:2_000]
    return f"{name} has no section {one_line(section, 100)!r}; there are: {headings or 'none, read it whole'}"


def count(folder: Path) -> Mapping[str, Path]:
    """The runbooks of a folder, for `watchkeeper doctor`; Unreadable when it is none."""
    return Folder(folder).names()

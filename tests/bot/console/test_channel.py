"""The channel's file: nothing is lost with the process, and a page can ask for what it missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.console.channel import Channel, NoSuchThread
from bot.console.rows import Kind


async def test_everything_is_there_after_the_process_ended(tmp_path: Path) -> None:
    before = await Channel.open(tmp_path / "console.db")
    root = await before.write(Kind.PERSON, "ana", "hello")
    await before.react(root.ref, "eyes", None)
    await before.whisper(root.ref, "gus", "not you")
    change = before.change
    await before.close()
    after = await Channel.open(tmp_path / "console.db")
    [found] = await after.messages("thread = ?", root.ref)
    assert (found.text, found.receipts) == ("hello", ("eyes",))
    assert [note.text for note in await after.notes(root.ref, "gus")] == ["not you"]
    assert after.change == change
    await after.close()


async def test_a_page_that_fell_behind_is_told_what_is_new_and_what_changed(channel: Channel) -> None:
    root = await channel.write(Kind.PERSON, "ana", "hello")
    seen = channel.change
    reply = await channel.write(Kind.PERSON, "ben", "hi", thread=root.ref)
    await channel.react(root.ref, "eyes", None)
    missed = await channel.messages("changed > ?", seen)
    assert [(one.ref, one.created > seen) for one in missed] == [(root.ref, False), (reply.ref, True)]


async def test_numbers_go_on_after_a_restart_though_the_newest_change_left_no_trace(tmp_path: Path) -> None:
    before = await Channel.open(tmp_path / "console.db")
    await before.write(Kind.PERSON, "ana", "hello")
    await before.press("{}")
    change = before.change
    await before.close()
    after = await Channel.open(tmp_path / "console.db")
    new = await after.write(Kind.PERSON, "ana", "again")
    assert new.created > change
    await after.close()


async def test_references_never_come_twice_and_keep_their_order(channel: Channel) -> None:
    written = await asyncio.gather(*(channel.write(Kind.PERSON, "ana", str(n)) for n in range(50)))
    refs = [message.ref for message in written]
    assert len(set(refs)) == 50
    assert [one.ref for one in await channel.messages("1")] == sorted(refs, key=float)


async def test_who_waits_for_a_change_is_woken_by_it(channel: Channel) -> None:
    waiting = asyncio.create_task(channel.wait_beyond(channel.change, 10))
    await asyncio.sleep(0)
    await channel.write(Kind.PERSON, "ana", "hello")
    async with asyncio.timeout(1):
        await waiting


async def test_nobody_can_write_into_a_thread_that_is_not_there(channel: Channel) -> None:
    with pytest.raises(NoSuchThread):
        await channel.write(Kind.PERSON, "ana", "hello", thread="1.000000")
    assert await channel.messages("1") == []

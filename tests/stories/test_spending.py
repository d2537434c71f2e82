"""What the model cost: every request is booked, also broken-off ones, and what was sent before is cached."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage import tables
from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.ledger import Entry
from tests.servers.anthropic.reply import overloaded, reply
from tests.stories.room import Room
from tests.stories.telling import ask, held, release, reply_to, story, until_reached

FAST = call("probe__fast", {"text": "a"})


async def booked(room: Room) -> list[Row[Any]]:
    """The requests in the records, in order."""

    async def requests(tx: AsyncConnection) -> list[Row[Any]]:
        return list((await tx.execute(select(tables.requests).order_by(tables.requests.c.id))).all())

    return await (await room.records()).read(requests)


def agree(row: Row[Any], entry: Entry) -> bool:
    """Whether what is booked is what the provider would bill."""
    usage = entry.usage
    return (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens) == (
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
    )


async def test_every_finished_request_is_booked_as_the_provider_bills_it(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text("Looking."), FAST), reply(FAST, FAST), reply(text("it is the deploy")))
        await ask(room)
        [record] = await room.until_settled("completed")
        rows = await booked(room)
        assert [agree(row, entry) for row, entry in zip(rows, room.model.ledger, strict=True)] == [True] * 3
        assert all(row.exact and row.purpose == "step" for row in rows)
        spent = room.model.spent
        assert (record["input_tokens"], record["output_tokens"]) == (spent.input, spent.output)
        assert (record["cache_read_tokens"], record["cache_write_tokens"]) == (
            spent.cache_read,
            spent.cache_write,
        )
        assert (record["steps"], record["tool_calls"]) == (3, 3)


async def test_a_stream_that_a_steer_broke_off_is_booked_by_estimate(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think it is " * 50), gate), reply(text("it is the deploy")))
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, "look at the deploy")
        await room.until_settled("steered", "completed")
        broken, whole = await booked(room)
        assert (broken.exact, whole.exact) == (False, True)
        assert broken.input_tokens == room.model.ledger[0].usage.input
        assert broken.output_tokens >= 50
        assert agree(whole, room.model.ledger[1])


async def test_a_stream_that_broke_is_booked_and_an_overload_is_not(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(overloaded(), reply(text("I think " * 50)).cut(before="message_delta"))
        room.model.script(reply(text("it is the deploy")))
        await ask(room)
        [record] = await room.until_settled("completed")
        rows = await booked(room)
        assert [bool(row.exact) for row in rows] == [False, True]
        assert record["input_tokens"] == sum(row.input_tokens for row in rows)


async def test_a_failed_turn_is_paid_for_too(tmp_path: Path) -> None:
    async with story(tmp_path, retry_for_s=0) as room:
        room.model.script(reply(text("I think " * 50)).broken(before="message_delta"))
        await ask(room)
        [record] = await room.until_settled("failed")
        [row] = await booked(room)
        assert (row.exact, record["output_tokens"]) == (False, row.output_tokens)
        assert row.output_tokens > 0


async def test_a_stopped_turn_is_paid_for_too(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think " * 50), gate))
        thread = await ask(room)
        await gate.reached(timeout=30)
        await reply_to(room, thread, "!stop")
        await room.until_settled("stopped")
        [row] = await booked(room)
        assert row.output_tokens > 0


async def test_what_was_sent_before_is_read_from_the_cache_through_steers_and_turns(tmp_path: Path) -> None:
    async with story(tmp_path, gather_s=0) as room:
        room.model.script(
            reply(text("Looking."), held(room, "a", "probe__hold_write")),
            reply(FAST),
            reply(text("the deploy")),
        )
        room.model.script(reply(text("yes")))
        thread = await ask(room)
        await until_reached(room, "a")
        await reply_to(room, thread, "look at the deploy")
        release(room, "a")
        await room.until_settled("steered", "completed")
        await reply_to(room, thread, "sure?")
        await room.until_settled("steered", "completed", "completed")
        read = [row.cache_read_tokens for row in await booked(room)]
        assert read[0] == 0
        assert 0 < read[1] < read[2] < read[3]
        sent = [list(request.messages) for request in room.model.requests]
        bare = [[_bare(message) for message in messages] for messages in sent]
        assert all(after[: len(before)] == before for before, after in pairwise(bare))
        assert (
            len({str(request.body["tools"]) + request.system_text() for request in room.model.requests}) == 1
        )


def _bare(message: Any) -> Any:
    """A message without the marks of where the cache ends."""
    if isinstance(message, dict):
        return {key: _bare(value) for key, value in message.items() if key != "cache_control"}
    return [_bare(one) for one in message] if isinstance(message, list) else message

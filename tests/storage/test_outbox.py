"""What is said once is queued once, in order within a thread, and open until the platform has taken it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from storage import outbox
from storage import tables as t
from tests.storage.world import World, booking


async def queue(world: World, once: str, **changes: Any) -> None:
    given = {"kind": "failed", "text": once, **changes}
    await world.database.write(outbox.queue, world.id, once=once, **given)


async def due(world: World) -> list[str]:
    return [row.once for row in await world.database.read(outbox.due, "w1")]


async def first_open(world: World) -> Row[Any] | None:
    return await world.database.read(outbox.first_open, world.id)


async def test_one_thing_is_queued_once(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    await queue(world, "a", text="again")
    assert await world.posts() == ["a"]


async def test_what_is_due_comes_in_the_order_in_which_it_was_queued(world: World) -> None:
    await world.hears()
    for once in "cab":
        await queue(world, once)
    said = []
    while rows := await world.database.read(outbox.due, "w1"):
        [row] = rows  # the next of the thread
        said.append(row.once)
        assert (row.platform, row.channel) == ("slack", "C1")
        await world.database.write(outbox.part_done, row.id, 1, 1)
    assert said == ["c", "a", "b"]


async def test_a_message_that_waits_for_its_next_try_holds_up_the_thread(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    await queue(world, "b")
    row = await first_open(world)
    assert row is not None
    assert row.once == "a"
    await world.database.write(outbox.try_later, row.id, 60.0, not_sent=True)
    assert await first_open(world) is None
    assert (await world.one(t.outbox, once="a")).tries == 1


async def test_a_message_of_several_parts_is_done_with_its_last(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    row = await world.one(t.outbox)
    assert await begin(world, row) is not None
    await world.database.write(outbox.part_done, row.id, 1, 2)
    row = await world.one(t.outbox)
    assert (row.parts_done, row.posting_since, row.done_at) == (1, None, None)
    await world.database.write(outbox.part_done, row.id, 2, 2)
    assert (await world.one(t.outbox)).done_at is not None
    assert await first_open(world) is None


async def test_only_the_whole_answer_counts_as_posted(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    row = await world.one(t.outbox, kind="answer")
    await world.database.write(outbox.part_done, row.id, 1, 2)
    assert (await world.one(t.settlements)).answer_posted_at is None
    await world.database.write(outbox.part_done, row.id, 2, 2)
    first = (await world.one(t.settlements)).answer_posted_at
    assert first is not None
    await world.database.write(outbox.part_done, row.id, 2, 2)
    assert (await world.one(t.settlements)).answer_posted_at == first


async def begin(world: World, row: Row[Any]) -> float | None:
    """A process that has read this row is about to send its next part."""
    return await world.database.write(outbox.begin_post, row.id, row.parts_done, row.posting_since)


async def test_each_try_is_marked_anew_until_it_was_surely_not_sent(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    first = await begin(world, await world.one(t.outbox))
    await world.database.write(outbox.try_later, (await world.one(t.outbox)).id, 0.0, not_sent=False)
    second = await begin(world, await world.one(t.outbox))
    assert first is not None
    assert second is not None
    assert second > first
    await world.database.write(outbox.try_later, (await world.one(t.outbox)).id, 0.0, not_sent=True)
    assert (await world.one(t.outbox)).posting_since is None


async def test_who_waited_while_another_process_sent_it_may_not_send_it_again(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    read = await world.one(t.outbox)
    assert await begin(world, read) is not None  # another process
    assert await begin(world, read) is None
    await world.database.write(outbox.part_done, read.id, 1, 2)
    assert await begin(world, read) is None
    read = await world.one(t.outbox)
    await world.database.write(outbox.part_done, read.id, 2, 2)
    assert await begin(world, read) is None


async def test_what_is_given_up_is_done_with_a_record_and_holds_nothing_up(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    await queue(world, "b")
    row = await world.one(t.outbox, kind="answer")
    await world.database.write(outbox.give_up, row.id, "is_archived" * 50)
    row = await world.one(t.outbox, kind="answer")
    assert len(row.given_up) == 200
    assert row.done_at is not None
    assert (await world.one(t.settlements)).answer_posted_at is None
    assert await due(world) == ["b"]


async def test_what_its_thread_takes_no_more_is_sent_directly_to_who_began_the_conversation(
    world: World,
) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    answer = await world.one(t.outbox, kind="answer")
    for _ in range(2):
        await world.database.write(outbox.give_up, answer.id, "is_archived", "here it is")
    direct = await world.one(t.outbox, kind=outbox.UNDELIVERED)
    assert (direct.to_user, direct.text, direct.turn_id) == ("Ana", "here it is", turn.fence.turn_id)
    assert await due(world) == [direct.once]


async def test_where_nobody_began_the_conversation_nobody_is_written_to(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    post = await world.one(t.outbox)
    await world.database.write(outbox.give_up, post.id, "is_archived", "here it is")
    assert await world.posts() == ["a"]


async def test_what_another_process_has_posted_meanwhile_is_not_given_up(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    answer = await world.one(t.outbox, kind="answer")
    await world.database.write(outbox.part_done, answer.id, 1, 1)
    await world.database.write(outbox.give_up, answer.id, "is_archived", "here it is")
    [post] = await world.rows(t.outbox)
    assert post.given_up is None


async def test_after_an_outage_what_waited_for_its_end_is_due(world: World) -> None:
    await world.hears()
    await queue(world, "a")
    post = await world.one(t.outbox)
    await world.database.write(outbox.try_later, post.id, 30.0, not_sent=True)
    assert await world.database.write(outbox.due_again, 20.0) == 0
    assert await due(world) == []
    assert await world.database.write(outbox.due_again, 40.0) == 1
    assert await due(world) == ["a"]

"""What comes in is stored once, whatever it comes as."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.arrivals import Deletion, EarlierMessage, Edit, Marker, Source, Thread
from core.history import Message
from core.policy import Effect
from storage import inbox
from storage import tables as t
from tests.storage.world import THREAD, World, text_of


def edit_of(key: str, text: str, edit_key: str = "edit 1") -> Edit:
    return Edit(THREAD, key, edit_key, text)


async def read(world: World) -> str:
    """The key of a message that a running turn has read."""
    await world.begins()
    return "slack:C1:1"


async def shown_next(world: World) -> list[Message]:
    """What the next turn shows, beyond what the first showed."""
    await world.says("go on", "Ben")
    turn = await world.starts()
    return list(turn.messages[1:])


# --- arrivals -------------------------------------------------------------------------------------------


async def test_a_message_is_stored_once_under_whatever_event_it_comes(world: World) -> None:
    mention = world.message()
    reply = replace(mention, source=Source.THREAD_REPLY, may_open=False)
    first, again, as_reply = await world.stores(mention, mention, reply)
    assert first.seq is not None
    assert (again.seq, as_reply.seq) == (None, None)
    assert len(await world.rows(t.inbox)) == 1


async def test_it_is_stored_once_by_two_transactions_too(world: World) -> None:
    mention = world.message()
    await world.stores(mention)
    [again] = await world.stores(mention)
    assert again.seq is None


async def test_messages_are_numbered_in_the_order_in_which_they_came(world: World) -> None:
    stored = await world.stores(*(world.message() for _ in range(5)))
    seqs = [one.seq for one in stored if one.seq is not None]
    assert seqs == sorted(seqs)
    assert len(seqs) == 5


async def test_a_thread_that_is_none_of_ours_is_not_stored(world: World) -> None:
    [stored] = await world.stores(world.message(may_open=False))
    assert stored.seq is None
    assert await world.rows(t.conversations) == []


async def test_a_reply_in_a_thread_of_ours_is_stored(world: World) -> None:
    await world.hears()
    [stored] = await world.stores(world.message(may_open=False, source=Source.THREAD_REPLY))
    assert stored.seq is not None


async def test_a_message_that_was_delivered_late_has_its_thread_read_for_replies_that_overtook_it(
    world: World,
) -> None:
    await world.hears(sent_at=await world.now() - 5)
    assert (await world.conversation()).history == "wanted"


async def test_a_thread_that_existed_before_wants_its_history_read_and_a_new_one_has_none(
    world: World,
) -> None:
    await world.hears(inside_thread=True)
    other = Thread("slack", "T1", "C1", "2")
    await world.stores(world.message(thread=other))
    assert (await world.one(t.conversations, id=world.id)).history == "wanted"
    assert (await world.one(t.conversations, id=other.conversation_id)).history == "none"


async def test_a_button_of_a_turn_that_nobody_knows_is_reported_and_not_stored(world: World) -> None:
    await world.hears()
    click = world.message(source=Source.STOP_REQUEST, stops_turn="turn_unknown", may_open=False)
    [stored] = await world.stores(click)
    assert stored.unknown_turn
    assert stored.seq is None


async def test_a_button_bears_no_receipt(world: World) -> None:
    turn = await world.begins()
    seq = await world.stops(turn_id=turn.fence.turn_id)
    assert (await world.one(t.inbox, seq=seq)).message_ref is None


# --- edits ----------------------------------------------------------------------------------------------


async def test_an_unread_message_is_replaced_by_its_edit_and_read_once(world: World) -> None:
    await world.says("why is chekout slow?")
    await world.stores(edit_of("slack:C1:1", "why is checkout slow?"))
    assert await world.fates() == {"why is chekout slow?": "replaced", "why is checkout slow?": "waiting"}
    turn = await world.starts()
    assert "chekout" not in text_of(turn.messages)
    assert text_of(turn.messages).count("why is checkout slow?") == 1


async def test_an_edit_of_an_undecided_message_is_decided_in_its_place(world: World) -> None:
    old = await world.hears("why is chekout slow?")
    [stored] = await world.stores(edit_of("slack:C1:1", "why is checkout slow?"))
    assert stored.seq is not None
    assert await world.decides(old) is None
    assert await world.decides(stored.seq) is Effect.START


async def test_an_edit_that_changes_no_word_does_nothing(world: World) -> None:
    await world.says("why?")
    [stored] = await world.stores(edit_of("slack:C1:1", "why?"))
    assert stored.seq is None
    assert await world.fates() == {"why?": "waiting"}


async def test_an_edit_arrives_once(world: World) -> None:
    await world.says("one")
    first, again = await world.stores(edit_of("slack:C1:1", "two"), edit_of("slack:C1:1", "two"))
    assert first.seq is not None
    assert again.seq is None
    assert await world.fates() == {"one": "replaced", "two": "waiting"}


async def test_edits_of_edits_leave_one_message(world: World) -> None:
    await world.says("one")
    await world.stores(edit_of("slack:C1:1", "two"), edit_of("slack:C1:1", "three", "edit 2"))
    assert await world.fates() == {"one": "replaced", "two": "replaced", "three": "waiting"}


async def test_of_a_message_that_was_read_the_model_is_told_what_it_became(world: World) -> None:
    key = await read(world)
    await world.stores(edit_of(key, "why is search slow?"))
    assert "Ana A. changed an earlier message to:\nwhy is search slow?" in text_of(
        await shown_next_turn(world)
    )


async def shown_next_turn(world: World) -> list[Message]:
    """End the running turn and return what the next one shows beyond it."""
    await world.loses_its_worker()
    await world.reaps()
    return await shown_next(world)


async def test_every_later_edit_of_a_read_message_is_told_as_what_it_is(world: World) -> None:
    key = await read(world)
    await world.stores(edit_of(key, "second", "edit 1"), edit_of(key, "third", "edit 2"))
    shown = text_of(await shown_next_turn(world))
    assert "Ana A. changed an earlier message to:\nsecond" in shown
    assert "Ana A. changed an earlier message to:\nthird" in shown


async def test_a_read_message_that_is_changed_and_then_deleted_is_told_as_deleted(world: World) -> None:
    key = await read(world)
    await world.stores(edit_of(key, "second"), Deletion(THREAD, key))
    assert "Ana A. deleted an earlier message" in text_of(await shown_next_turn(world))


async def test_a_change_back_to_what_the_model_has_read_is_told_as_well(world: World) -> None:
    key = await read(world)
    original = (await world.rows(t.inbox))[0].text
    await world.stores(edit_of(key, "second", "edit 1"), edit_of(key, original, "edit 2"))
    told = [row for row in await world.rows(t.inbox) if row.source == Source.NOTICE]
    assert len(told) == 2
    assert told[-1].text.endswith(original)


async def test_an_edit_in_a_thread_that_nobody_knows_does_nothing(world: World) -> None:
    [stored] = await world.stores(edit_of("slack:C1:9", "x"))
    assert stored.seq is None


async def test_an_edit_that_comes_before_its_message_gives_it_its_words(world: World) -> None:
    await world.says()
    for number in (1, 1, 2):
        await world.stores(Edit(THREAD, "slack:C1:2", f"edit {number}", f"{number}", Marker.LATER))
    await world.hears("0", "Ben")
    row = await world.one(t.inbox, key="slack:C1:2")
    assert (row.text, row.marker, row.fate, row.author_id) == ("2", "later", "waiting", "Ben")
    [again] = await world.stores(Edit(THREAD, "slack:C1:2", "edit 2", "2", Marker.LATER))
    assert again.seq is None


@pytest.mark.parametrize("edits", [0, 1])
async def test_a_message_that_was_deleted_before_it_came_is_withdrawn(world: World, edits: int) -> None:
    await world.says()
    for number in range(edits):
        await world.stores(Edit(THREAD, "slack:C1:2", f"edit {number}", "edited"))
    await world.stores(Deletion(THREAD, "slack:C1:2"))
    await world.hears("0", "Ben")
    assert (await world.one(t.inbox, key="slack:C1:2")).fate == "withdrawn"
    assert [row.key for row in await world.database.read(inbox.undecided)] == []


async def test_what_was_denied_stays_denied_whatever_it_becomes(world: World) -> None:
    await world.says("let me in", "Gil")
    await world.stores(edit_of("slack:C1:1", "please"))
    assert await world.fates() == {"let me in": "denied"}


# --- deletions ------------------------------------------------------------------------------------------


async def test_an_unread_message_that_is_deleted_is_withdrawn(world: World) -> None:
    seq = await world.says()
    await world.stores(Deletion(THREAD, "slack:C1:1"))
    assert await world.fate(seq) == "withdrawn"
    assert (await world.one(t.inbox, seq=seq)).receipt is None
    assert await world.claims() is None


async def test_of_a_read_message_that_is_deleted_the_model_is_told_once(world: World) -> None:
    key = await read(world)
    await world.stores(Deletion(THREAD, key), Deletion(THREAD, key))
    shown = text_of(await shown_next_turn(world))
    assert shown.count("Ana A. deleted an earlier message") == 1


async def test_context_that_was_not_shown_yet_can_be_withdrawn(world: World) -> None:
    await world.begins()
    [stored] = await world.stores(
        world.message("psst", "Ben", source=Source.THREAD_REPLY, addressed="person")
    )
    assert stored.seq is not None
    assert await world.decides(stored.seq) is Effect.CONTEXT
    await world.stores(Deletion(THREAD, "slack:C1:2"))
    assert await world.fate(stored.seq) == "withdrawn"


# --- what stood in the thread before --------------------------------------------------------------------


async def test_earlier_messages_are_context_shown_before_the_question_in_their_order(world: World) -> None:
    await world.says("why?", inside_thread=True)
    earlier = [
        EarlierMessage("slack:C1:e2", "U2", "Ben", False, "it began at 14:05", 2.0),
        EarlierMessage("slack:C1:e1", "B1", "Pager", True, "p99 is high", 1.0),
    ]
    await world.database.write(inbox.add_history, world.id, earlier, complete=True)
    await world.database.write(inbox.add_history, world.id, earlier, complete=True)
    assert (await world.conversation()).history == "read"
    turn = await world.starts()
    words = text_of(turn.messages)
    assert words.index("p99 is high") < words.index("it began at 14:05") < words.index("why?")
    assert words.count("p99 is high") == 1


async def test_history_that_could_not_be_read_is_recorded_as_missing(world: World) -> None:
    await world.says(inside_thread=True)
    await world.database.write(inbox.add_history, world.id, [], complete=False)
    assert (await world.conversation()).history == "missing"


async def test_undecided_messages_are_listed_oldest_first_until_they_are_decided(world: World) -> None:
    first, second = await world.hears(), await world.hears()
    rows = await world.database.read(inbox.undecided)
    assert [row.seq for row in rows] == [first, second]
    assert rows[0].workspace == "T1"
    await world.decides(first)
    assert [row.seq for row in await world.database.read(inbox.undecided)] == [second]

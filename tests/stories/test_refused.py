"""What Slack refuses for good: each refusal ends in a stated, visible state, and nothing goes on for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.history import Json
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.slack.messages import Message
from tests.stories.looking import until_stored
from tests.stories.room import Room, eventually
from tests.stories.telling import (
    ANSWER,
    CARD,
    ask,
    card_posts,
    held,
    is_card,
    must_be_well,
    quiet,
    release,
    until_reached,
    works,
)


def closed_by(room: Room, how: str, thread: str) -> None:
    """Somebody closes the place to us."""
    match how:
        case "archived":
            room.slack.archive("#inc")
        case "removed":
            room.slack.remove_bot("#inc")
        case _:
            room.slack.lock_thread("#inc", thread)


SAYS = {
    "archived": ("is_inactive", "is_archived"),
    "removed": ("not_in_channel", "not_in_channel"),
    "locked": ("", "restricted_action_thread_locked"),
}
"""What Slack then answers to an update and to a post; a card in a locked thread can be updated."""


def direct_words(room: Room, who: str = "Ana") -> list[str]:
    """What somebody was written outside of the thread."""
    user = room.slack.workspace.user(who).id
    return [message.text for message in room.slack.bot_messages() if message.channel == f"D{user[1:]}"]


async def has_settled(room: Room) -> bool:
    return bool(await room.settles())


async def the_record(room: Room) -> dict[str, Json]:
    """The one settle record, once it says what became of the answer."""

    async def told() -> bool:
        return all(record["answer_posted_at"] or record["answer_given_up"] for record in await room.settles())

    await eventually(lambda: has_settled(room), timeout=20)
    await eventually(told, timeout=20)
    [record] = await room.settles()
    return record


def cards_of(room: Room) -> list[Message]:
    """All cards that were ever posted."""
    return [message for message in room.slack.bot_messages() if message.ts in posted(room)]


def posted(room: Room) -> set[str]:
    return {str(call.result["ts"]) for call in card_posts(room) if call.ok and call.result}


# --- the place is closed to us ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["archived", "removed", "locked"])
async def test_before_the_first_card_the_answer_comes_to_who_asked(tmp_path: Path, how: str) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        waiting = room.slack.hang("chat.postMessage", times=None)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        ts = await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda _: waiting.waiting, timeout=10)
        closed_by(room, how, ts)
        room.slack.heal("chat.postMessage")
        release(room, "r")
        record = await the_record(room)
        assert SAYS[how][1] in record["answer_given_up"]
        await eventually(lambda: is_given_up(room, "card_given_up", SAYS[how][1]))
        await room.slack.wait_for(lambda _: direct_words(room), timeout=10)
        [told] = direct_words(room)
        assert SAYS[how][1] in told
        assert told.endswith("it is the deploy")
        await must_be_well(room)


async def is_given_up(room: Room, what: str, why: str) -> bool:
    return why in str((await room.settles())[0][what])


@pytest.mark.parametrize("how", ["archived", "removed", "locked"])
async def test_in_the_middle_the_answer_comes_to_who_asked_and_the_record_says_it(
    tmp_path: Path, how: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await works(room)
        closed_by(room, how, ts)
        release(room, "r")
        record = await the_record(room)
        assert SAYS[how][1] in record["answer_given_up"]
        await room.slack.wait_for(lambda _: direct_words(room), timeout=10)
        if SAYS[how][0]:
            await eventually(lambda: is_given_up(room, "card_given_up", SAYS[how][0]))
        await must_be_well(room, left_live=1 if SAYS[how][0] else 0)
        calls = len(room.slack.calls)
        await quiet(0.5)
        assert len(room.slack.calls) == calls


async def test_before_the_answer_only_the_answer_is_missing(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        waiting = room.slack.hang("chat.postMessage", times=None, when=is_answer)
        release(room, "r")
        await room.slack.wait_for(lambda slack: waiting.waiting and not slack.live_cards(), timeout=20)
        room.slack.archive("#inc")
        room.slack.heal("chat.postMessage")
        record = await the_record(room)
        assert (record["card_given_up"], record["answer_posted_at"]) == (None, None)
        assert record["card_released_at"]
        await must_be_well(room)


def is_answer(args: dict[str, Json]) -> bool:
    return ANSWER in str(args.get("metadata"))


async def test_where_nobody_can_be_written_to_directly_the_record_alone_says_it(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await works(room)
        room.slack.disable_messages_tab()
        room.slack.lock_thread("#inc", ts)
        release(room, "r")
        assert "thread_locked" in (await the_record(room))["answer_given_up"]
        await must_be_well(room)
        assert direct_words(room) == []
        assert len([call for call in room.slack.calls if call.error == "messages_tab_disabled"]) == 1


async def test_a_channel_that_was_opened_again_before_the_end_gets_everything(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room, "r", "s")
        room.slack.archive("#inc")
        release(room, "r")
        await until_reached(room, "s")
        await room.slack.wait_for(lambda slack: [c for c in slack.calls if c.error == "is_inactive"], 10)
        await quiet()
        room.slack.unarchive("#inc")
        release(room, "s")
        [record] = await room.until_settled("completed")
        assert (record["card_given_up"], record["answer_given_up"]) == (None, None)
        assert direct_words(room) == []
        await must_be_well(room)


async def test_a_card_left_behind_is_released_once_the_channel_takes_another(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await works(room)
        room.slack.remove_bot("#inc")
        release(room, "r")
        await the_record(room)
        await must_be_well(room, left_live=1)
        room.slack.workspace.channel("#inc").members.add(room.slack.bot_user_id)
        room.model.script(reply(text("still the deploy")))
        await room.slack.say("Ana", "#inc", "and now?", thread=ts, mention=True)
        await until_stored(room, ts, 2)
        await room.slack.wait_for(lambda slack: not slack.live_cards(), timeout=10)
        await must_be_well(room)
        assert all(record["card_released_at"] for record in await room.settles())


# --- the message is gone or cannot be changed ---------------------------------------------------------------


async def test_a_card_that_is_deleted_again_and_again_is_posted_anew_only_once(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room, "r", "s", "u")
        for step, then in (("r", "s"), ("s", "u")):
            [card] = room.slack.live_cards()
            await room.slack.delete(card.ts)
            release(room, step)
            await until_reached(room, then)
            if then == "s":
                await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        await quiet()
        release(room, "u")
        record = await the_record(room)
        await eventually(lambda: is_given_up(room, "card_given_up", "gone"))
        assert record["answer_posted_at"]
        assert len(card_posts(room)) == 2
        await must_be_well(room)


@pytest.mark.parametrize("progress", [False, True], ids=["at the release", "while it works"])
async def test_a_card_that_may_be_edited_no_more_gives_way_to_another(tmp_path: Path, progress: bool) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room, "r", "s")
        if progress:
            room.slack.close_edit_window()
        release(room, "r")
        await until_reached(room, "s")
        await quiet(0.5)
        room.slack.close_edit_window()
        release(room, "s")
        [record] = await room.until_settled("completed")
        assert record["card_given_up"] is None
        [card] = room.slack.of_type(CARD)
        assert len(cards_of(room)) == 3 if progress else len(cards_of(room)) <= 3
        assert [message.deleted for message in cards_of(room)].count(False) == 1
        assert card.metadata is not None
        assert card.metadata["event_payload"]["state"] == "released"
        refused = [call for call in room.slack.calls if call.error == "edit_window_closed"]
        assert len(refused) <= 3
        await must_be_well(room)


async def test_a_card_that_may_be_neither_edited_nor_deleted_is_left_behind_and_the_end_is_said(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        room.slack.close_edit_window()
        room.slack.fail("chat.delete", "cant_delete_message", times=None)
        release(room, "r")
        await room.until_settled("completed")
        states = [card.metadata["event_payload"]["state"] for card in cards_of(room) if card.metadata]
        assert states[-1] == "released"
        assert set(states[:-1]) == {"live"}
        await quiet(0.5)
        assert len(card_posts(room)) == len(states) <= 3


async def test_a_message_that_slack_says_is_not_ours_gives_way_to_one_that_is(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        room.slack.fail("chat.update", "cant_update_message")
        release(room, "r")
        await room.until_settled("completed")
        assert len(card_posts(room)) == 2
        await must_be_well(room)


# --- Slack refuses the form ---------------------------------------------------------------------------------

WORDS_ONLY: dict[str, Callable[[dict[str, Json]], bool]] = {
    "invalid_blocks": lambda args: bool(args.get("blocks")),
    "msg_blocks_too_long": lambda args: bool(args.get("blocks")),
    "msg_too_long": lambda args: bool(args.get("blocks")) or len(str(args.get("text"))) > 160,
}


@pytest.mark.parametrize("error", WORDS_ONLY)
async def test_whatever_form_slack_refuses_the_end_and_the_answer_are_said(
    tmp_path: Path, error: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        for method in ("chat.postMessage", "chat.update"):
            room.slack.fail(method, error, times=None, when=WORDS_ONLY[error])
        await works(room)
        release(room, "r")
        [record] = await room.until_settled("completed")
        assert (record["card_given_up"], record["answer_given_up"]) == (None, None)
        [card] = room.slack.of_type(CARD)
        assert card.text.startswith("Answered")
        [answer] = room.posts(ANSWER)
        assert answer["text"] == "it is the deploy"
        await must_be_well(room)


async def test_what_slack_never_named_before_is_given_up_with_a_record_and_tried_once_more_at_the_end(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room, "r", "s")
        room.slack.fail("chat.update", "never_heard_of_it", times=None, when=is_card)
        release(room, "r")
        await until_reached(room, "s")
        await quiet(0.5)
        assert len([call for call in room.slack.calls if call.error == "never_heard_of_it"]) == 1
        room.slack.heal("chat.update")
        release(room, "s")
        await room.until_settled("completed")
        await must_be_well(room)

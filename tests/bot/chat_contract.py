"""What every implementation of the `Chat` port keeps, whichever platform it speaks to.

A platform's own test file imports these tests and says in a fixture `place` where they take place.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from bot.ports import Chat, Post
from core.arrivals import Thread
from core.card import Card, CardLine, CardState, LineState
from core.reasons import Reason
from core.usage import Usage

LIVE = Card(
    "turn-1",
    CardState.LIVE,
    "why is checkout slow?",
    "Investigating",
    "reading logs",
    (CardLine("a", "c1 logs", LineState.RUNNING, 1.5, "since 13:50"),),
    steered_by=("Ben",),
    usage=Usage(10, 20, 0, 0, 0.01),
    stoppable=True,
)
RELEASED = replace(
    LIVE, state=CardState.RELEASED, reason=Reason.COMPLETED, headline="Answered", stoppable=False
)
ANSWER = Post("p-1", "answer", "The deploy removed **an index**.", "turn-1", "e-1")
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50


@dataclass(frozen=True)
class Place:
    """A thread that Ana began on some platform, and how its people are seen and heard."""

    chat: Chat
    thread: Thread
    say: Callable[[str, str], Awaitable[str]]
    """Somebody writes in the thread; returns the reference."""
    receipts: Callable[[str], Awaitable[list[str]]]
    """The reactions on a message."""
    told: Callable[[str], Awaitable[list[str]]]
    """What one person alone was told."""
    user: Callable[[str], str]
    """The platform's id of Ana, Ben, the guest or the stranger."""


async def show(place: Place, ref: str | None, card: Card) -> str:
    """Wait for a place and show the card, as the reconciler does."""
    await place.chat.card_slot(place.thread, ref, urgent=card.state is CardState.RELEASED)
    return await place.chat.show_card(place.thread, ref, card)


async def test_a_card_is_live_until_its_release_in_the_same_message(place: Place) -> None:
    since = time.time() - 60
    ref = await show(place, None, LIVE)
    assert [(thread, card.ref) for thread, card in await place.chat.live_cards(since)] == [
        (place.thread, ref)
    ]
    assert await show(place, ref, RELEASED) == ref
    assert await place.chat.live_cards(since) == []
    [found] = await place.chat.find(place.thread, since)
    assert found.event_type == "watchkeeper_card"
    assert found.payload == {"turn_id": "turn-1", "state": "released", "reason": "completed"}


async def test_a_card_that_is_handed_on_names_the_later_turn(place: Place) -> None:
    ref = await show(place, None, LIVE)
    await show(place, ref, replace(LIVE, turn_id="turn-2"))
    [found] = await place.chat.find(place.thread, 0.0)
    assert (found.ref, found.payload["turn_id"], found.payload["state"]) == (ref, "turn-2", "live")
    assert "reason" not in found.payload


async def test_parts_of_an_answer_are_found_again_by_what_they_say_of_themselves(place: Place) -> None:
    since = time.time() - 60
    refs = [
        await place.chat.post(place.thread, replace(ANSWER, part=part, parts=2, text=f"part {part}"))
        for part in (1, 2)
    ]
    found = await place.chat.find(place.thread, since)
    assert [one.ref for one in found] == refs
    assert [one.event_type for one in found] == ["watchkeeper_answer"] * 2
    assert [(one.payload["post_id"], one.payload["part"], one.payload["parts"]) for one in found] == [
        ("p-1", 1, 2),
        ("p-1", 2, 2),
    ]
    assert {one.payload["final_event_id"] for one in found} == {"e-1"}


async def test_a_note_and_a_chart_are_found_by_their_kind(place: Place) -> None:
    await place.chat.post(place.thread, Post("p-2", "failed", "It failed.", "turn-1"))
    await place.chat.post(place.thread, Post("p-3", "chart", "p99 of checkout", "turn-1", chart=PNG))
    found = await place.chat.find(place.thread, 0.0)
    assert [(one.event_type, one.payload["kind"]) for one in found] == [
        ("watchkeeper_note", "failed"),
        ("watchkeeper_note", "chart"),
    ]
    assert all(None not in one.payload.values() for one in found)


async def test_nothing_older_than_asked_for_is_found(place: Place) -> None:
    await place.chat.post(place.thread, ANSWER)
    assert await place.chat.find(place.thread, time.time() + 60) == []


async def test_a_message_bears_one_receipt_of_ours_at_a_time(place: Place) -> None:
    ref = await place.say("Ben", "and the database?")
    await place.chat.set_receipt(place.thread, ref, "eyes", None)
    await place.chat.set_receipt(place.thread, ref, "eyes", None)
    assert await place.receipts(ref) == ["eyes"]
    await place.chat.set_receipt(place.thread, ref, "white_check_mark", "eyes")
    assert await place.receipts(ref) == ["white_check_mark"]
    await place.chat.set_receipt(place.thread, ref, None, "white_check_mark")
    assert await place.receipts(ref) == []


async def test_private_words_reach_one_person(place: Place) -> None:
    await place.chat.tell_privately(place.thread, place.user("Ben"), "Only full members, sorry.")
    assert [words for words in await place.told("Ben") if "Only full members" in words]
    assert await place.told("Ana") == []


async def test_a_deleted_message_is_found_no_more_and_may_be_deleted_again(place: Place) -> None:
    ref = await place.chat.post(place.thread, ANSWER)
    await place.chat.delete(place.thread, ref)
    await place.chat.delete(place.thread, ref)
    assert await place.chat.find(place.thread, 0.0) == []


async def test_earlier_messages_are_what_others_wrote_in_their_order(place: Place) -> None:
    await place.say("Ben", "it began at 14:05")
    await place.chat.post(place.thread, ANSWER)
    last = await place.say("Ana", "thanks")
    earlier = await place.chat.earlier_messages(place.thread, float(last))
    assert [(one.author_name.lower(), one.is_bot) for one in earlier] == [("ana", False), ("ben", False)]
    assert earlier[1].text == "it began at 14:05"
    assert earlier[0].key != earlier[1].key


async def test_people_are_known_by_the_platforms_own_record(place: Place) -> None:
    ana = await place.chat.author(place.thread.workspace, place.user("Ana"))
    guest = await place.chat.author(place.thread.workspace, place.user("guest"))
    stranger = await place.chat.author(place.thread.workspace, place.user("stranger"))
    assert (ana.name.lower(), ana.is_guest, ana.is_external) == ("ana", False, False)
    assert (guest.is_guest, stranger.is_external) == (True, True)


def test_a_long_text_is_split_with_its_code_closed_and_opened_again(place: Place) -> None:
    code = "\n".join(f"line {number} of the code, which is long enough" for number in range(2_000))
    parts = place.chat.split(f"Before.\n\n```sql\n{code}\n```\n\nAfter.")
    assert len(parts) > 1
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert "".join(parts).count("line 1999 of") == 1


def test_a_short_text_stays_whole_and_no_words_are_no_message(place: Place) -> None:
    assert place.chat.split("One line.") == ["One line."]
    assert place.chat.split(" \n ") == []

"""What people say on the console means what it means on Slack, and is handed in though the process dies."""

from __future__ import annotations

import pytest

from bot.console.channel import Channel
from bot.console.people import BY_ID
from bot.console.say import Mouth, understood
from bot.ports import Incoming
from core.arrivals import Addressed, Arrival, Deletion, Edit, Marker, Source

ANA = BY_ID["ana"]


class Inbox:
    """Where a test stores what comes in; broken, it stores nothing."""

    def __init__(self) -> None:
        self.stored: list[Incoming] = []
        self.broken = False

    async def accept(self, incoming: Incoming) -> None:
        if self.broken:
            raise OSError("the database is away")
        self.stored.append(incoming)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def mouth(channel: Channel, inbox: Inbox) -> Mouth:
    return Mouth(channel, inbox.accept)


@pytest.mark.parametrize(
    "words,text,marker,addressed,source",
    [
        ("@watchkeeper why?", "why?", Marker.NONE, Addressed.BOT, Source.MENTION),
        ("@Watchkeeper: ! look here", "! look here", Marker.NOW, Addressed.BOT, Source.MENTION),
        ("later: the bill", "later: the bill", Marker.LATER, Addressed.NOBODY, Source.THREAD_REPLY),
        ("@Ben can you look?", "@Ben can you look?", Marker.NONE, Addressed.PERSON, Source.THREAD_REPLY),
        ("ask @watchkeeper", "ask @watchkeeper", Marker.NONE, Addressed.NOBODY, Source.MENTION),
        ("`@watchkeeper` is its name", "`@watchkeeper` is its name", Marker.NONE, Addressed.NOBODY,
         Source.THREAD_REPLY),
        ("!stop", "!stop", Marker.NOW, Addressed.NOBODY, Source.STOP_REQUEST),
        ("@watchkeeper stop.", "stop.", Marker.NONE, Addressed.BOT, Source.STOP_REQUEST),
        ("stop", "stop", Marker.NONE, Addressed.NOBODY, Source.THREAD_REPLY),
        ("!stop the deploy", "!stop the deploy", Marker.NOW, Addressed.NOBODY, Source.THREAD_REPLY),
        ("mail ana@watchkeeper.example", "mail ana@watchkeeper.example", Marker.NONE, Addressed.NOBODY,
         Source.THREAD_REPLY),
    ],
)  # fmt: skip
def test_words_are_understood(
    words: str, text: str, marker: Marker, addressed: Addressed, source: Source
) -> None:
    speech = understood(words)
    assert (speech.text, speech.marker, speech.addressed, speech.source) == (text, marker, addressed, source)


async def test_a_mention_begins_a_thread_and_a_reply_stays_in_it(mouth: Mouth, inbox: Inbox) -> None:
    root = await mouth.say(ANA, "@watchkeeper why?")
    reply = await mouth.say(BY_ID["ben"], "and the database?", root.ref)
    first, second = inbox.stored
    assert isinstance(first, Arrival)
    assert isinstance(second, Arrival)
    assert (first.may_open, first.inside_thread, first.message_ref) == (True, False, root.ref)
    assert (second.may_open, second.inside_thread, second.message_ref) == (False, True, reply.ref)
    assert first.thread == second.thread
    assert (first.author_id, second.author_id) == ("ana", "ben")


async def test_words_in_the_channel_that_mention_nobody_are_not_handed_in(mouth: Mouth, inbox: Inbox) -> None:
    await mouth.say(ANA, "good morning")
    assert inbox.stored == []


async def test_what_could_not_be_stored_is_handed_in_later_and_only_then_struck_off(
    channel: Channel, mouth: Mouth, inbox: Inbox
) -> None:
    inbox.broken = True
    with pytest.raises(OSError, match="away"):
        await mouth.say(ANA, "@watchkeeper why?")
    assert len(await channel.deliveries()) == 1
    inbox.broken = False
    await Mouth(channel, inbox.accept).hand_in()  # as the next process does
    assert [incoming.key.rpartition(":")[0] for incoming in inbox.stored] == ["console:local:incidents"]
    assert await channel.deliveries() == []


async def test_edits_and_deletions_name_the_message_that_they_change(mouth: Mouth, inbox: Inbox) -> None:
    message = await mouth.say(ANA, "@watchkeeper why?")
    await mouth.edit(message, "@watchkeeper later: why?")
    await mouth.delete(message)
    written, edit, deletion = inbox.stored
    assert isinstance(edit, Edit)
    assert isinstance(deletion, Deletion)
    assert written.key == edit.key == deletion.key
    assert (edit.text, edit.marker) == ("later: why?", Marker.LATER)


async def test_a_press_of_stop_names_the_turn_of_the_card(
    channel: Channel, mouth: Mouth, inbox: Inbox
) -> None:
    card = await mouth.say(ANA, "@watchkeeper why?")
    await mouth.press_stop(ANA, card, "turn-1")
    click = inbox.stored[-1]
    assert isinstance(click, Arrival)
    assert (click.source, click.stops_turn, click.author_id) == (Source.STOP_REQUEST, "turn-1", "ana")

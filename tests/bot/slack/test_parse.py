"""What Slack's events mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.slack.parse import parse
from bot.words.speech import CUT_MARK, LONGEST_TEXT
from core.arrivals import Addressed, Arrival, Deletion, Edit, Marker, Source, Thread
from tests.bot.slack.messages import CHANNEL, ROOT, TS, US, changed, click, envelope, message, rich

KEY = f"slack:T1:{CHANNEL}:{TS}"
MENTION, TEXT = {"type": "user", "user_id": "UBOT"}, {"type": "text", "text": " why is checkout slow?"}


def arrival(body: dict[str, Any]) -> Arrival:
    found = parse(body, US)
    assert isinstance(found, Arrival)
    return found


def test_a_mention_opens_a_conversation_in_its_own_thread() -> None:
    found = arrival(message("<@UBOT> why is checkout slow?", blocks=rich(MENTION, TEXT)))
    assert found == Arrival(
        thread=Thread("slack", "T1", CHANNEL, TS),
        key=KEY,
        source=Source.MENTION,
        author_id="UANA",
        text="why is checkout slow?",
        addressed=Addressed.BOT,
        message_ref=TS,
        sent_at=float(TS),
        may_open=True,
        author_team="T1",
    )


@pytest.mark.parametrize(
    "more", [{}, {"type": "app_mention"}, {"subtype": "file_share"}, {"subtype": "me_message"}]
)
def test_whichever_event_carries_a_message_it_is_the_same_arrival(more: dict[str, Any]) -> None:
    assert arrival(message("<@UBOT> hi", **more)) == arrival(message("<@UBOT> hi"))


def test_a_mention_inside_a_thread_belongs_to_that_thread() -> None:
    found = arrival(message("<@UBOT> hi", thread_ts=ROOT))
    assert (found.thread.thread, found.source, found.may_open, found.inside_thread) == (
        ROOT,
        Source.MENTION,
        True,
        True,
    )


@pytest.mark.parametrize("subtype", [None, "thread_broadcast", "file_share", "me_message"])
def test_other_words_in_a_thread_may_not_open_a_conversation(subtype: str | None) -> None:
    found = arrival(message("look at the 14:05 deploy", thread_ts=ROOT, subtype=subtype))
    assert (found.source, found.may_open, found.inside_thread) == (Source.THREAD_REPLY, False, True)


@pytest.mark.parametrize(
    "body",
    [
        message("good morning"),
        message("good morning", thread_ts=TS),
        message("<@UBOT> has joined", subtype="channel_join"),
        message("<@UBOT> hi", type="app_mention", edited={"user": "UANA", "ts": TS}),
        message("<@UBOT> hi", user="UBOT"),
        message("<@UBOT> hi", user=None, bot_id="BBOT", subtype="bot_message"),
        message("<@UBOT> hi", user=None, bot_profile={"id": "B2", "app_id": "ABOT"}),
        message("<@UBOT> hi", ts="yesterday"),
        message("<@UBOT> hi", channel=None),
        message("<@UBOT> hi", user=None),
        envelope({"type": "reaction_added"}),
        {"type": "event_callback"},
        {},
    ],
)
def test_what_is_nothing_to_us(body: dict[str, Any]) -> None:
    assert parse(body, US) is None


@pytest.mark.parametrize(
    "text, blocks, is_mention",
    [
        ("<@UBOT> hi", None, True),
        ("ask <@UBOT|watchkeeper> please", None, True),
        ("`<@UBOT>` is how", None, False),
        ("```\n<@UBOT> x\n``` that", None, False),
        ("<@UBOT> hi", rich(MENTION), True),
        ("`<@UBOT>`", rich({**MENTION, "style": {"code": True}}), False),
        ("`<@UBOT>`", rich({"type": "text", "text": "<@UBOT>", "style": {"code": True}}), False),
        ("```<@UBOT>```", rich(MENTION, kind="rich_text_preformatted"), False),
        ("<@UBOT> hi", [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}], True),
    ],
)
def test_only_a_real_mention_is_one(text: str, blocks: object, is_mention: bool) -> None:
    found = parse(message(text, blocks=blocks), US)
    assert (found is not None) == is_mention


@pytest.mark.parametrize(
    "text, asks",
    [
        ("<@UBOT> stop", True),
        ("<@UBOT>  STOP!! ", True),
        ("<@UBOT>: stop.", True),
        ("<@UBOT> !stop", True),
        ("!stop", True),
        ("!Stop ", True),
        ("stop", False),
        ("<@UBOT> stop the deploy", False),
        ("!stop the deploy", False),
        ("<@UBEN> stop", False),
    ],
)
def test_stop_is_said_exactly(text: str, asks: bool) -> None:
    found = arrival(message(text, thread_ts=ROOT))
    assert (found.source is Source.STOP_REQUEST) == asks
    assert not (asks and found.may_open)


@pytest.mark.parametrize(
    "raw, text, marker, addressed",
    [
        ("<@UBOT> a &lt; b &amp;&amp; c &gt; d", "a < b && c > d", Marker.NONE, Addressed.BOT),
        ("&amp;lt;", "&lt;", Marker.NONE, Addressed.NOBODY),
        ("<@UBOT> !look at db-3", "!look at db-3", Marker.NOW, Addressed.BOT),
        ("! look", "! look", Marker.NOW, Addressed.NOBODY),
        ("LATER: and the cache", "LATER: and the cache", Marker.LATER, Addressed.NOBODY),
        ("<@UBEN> did you deploy?", "<@UBEN> did you deploy?", Marker.NONE, Addressed.PERSON),
        ("<!subteam^S1> ping", "<!subteam^S1> ping", Marker.NONE, Addressed.PERSON),
        ("ask <@UBEN>", "ask <@UBEN>", Marker.NONE, Addressed.NOBODY),
        ("<@UBOT> <@UBEN> knows", "<@UBEN> knows", Marker.NONE, Addressed.BOT),
        ("two\r\nlines\x00\x07\ud800", "two\nlines", Marker.NONE, Addressed.NOBODY),
    ],
)
def test_words_stay_as_they_were_typed(raw: str, text: str, marker: Marker, addressed: Addressed) -> None:
    found = arrival(message(raw, thread_ts=ROOT))
    assert (found.text, found.marker, found.addressed) == (text, marker, addressed)


def test_a_file_without_words_is_named() -> None:
    found = arrival(
        message("", thread_ts=ROOT, subtype="file_share", files=[{"name": "cpu.png"}, {"id": "F2"}])
    )
    assert found.text == "[attached: cpu.png, file]"


def test_a_file_beside_words_is_not() -> None:
    assert arrival(message("see", thread_ts=ROOT, files=[{"name": "cpu.png"}])).text == "see"


def test_a_huge_text_is_cut_and_says_so() -> None:
    text = arrival(message("x" * 100_000, thread_ts=ROOT)).text
    assert text == "x" * LONGEST_TEXT + CUT_MARK


@pytest.mark.parametrize(
    "more, is_bot, author",
    [
        ({}, False, "UANA"),
        ({"app_id": "A9"}, False, "UANA"),
        ({"app_id": "A9", "client_msg_id": None}, True, "UANA"),
        ({"bot_id": "B9"}, True, "UANA"),
        ({"bot_id": "B9", "user": None, "subtype": "bot_message"}, True, "B9"),
        ({"bot_profile": {"id": "B9", "app_id": "A9"}, "user": None}, True, "B9"),
        ({"user": "USLACKBOT"}, True, "USLACKBOT"),
    ],
)
def test_bots_are_told_from_people(more: dict[str, Any], is_bot: bool, author: str) -> None:
    found = arrival(message("<@UBOT> hi", **more))
    assert (found.author_is_bot, found.author_id) == (is_bot, author)


@pytest.mark.parametrize(
    "more, team",
    [
        ({}, "T1"),
        ({"user_team": "T2", "source_team": "T2"}, "T2"),
        ({"user_team": "T1", "source_team": "T2"}, "T1"),
        ({"user_team": "E9"}, "E9"),
        ({"user_profile": {"team": "T3"}, "source_team": "T2"}, "T3"),
        ({"team": None}, None),
    ],
)
def test_the_author_s_company_is_taken_from_the_most_telling_field(
    more: dict[str, Any], team: str | None
) -> None:
    assert arrival(message("<@UBOT> hi", **more)).author_team == team


def test_in_a_shared_channel_the_workspace_is_ours() -> None:
    body = message("<@UBOT> hi", user_team="T2") | {"team_id": "T2", "is_ext_shared_channel": True}
    assert arrival(body).thread.workspace == "T1"


def test_new_words_of_a_person_are_an_edit() -> None:
    assert parse(changed("db-2", "later: &lt;db-3&gt;"), US) == Edit(
        thread=Thread("slack", "T1", CHANNEL, ROOT),
        key=KEY,
        edit_key=f"{KEY}:edit:1700000009.000000",
        text="later: <db-3>",
        marker=Marker.LATER,
    )


@pytest.mark.parametrize(
    "body",
    [
        changed("same", "same", attachments=[{"title": "a preview"}]),
        changed("a", "b", bot_id="B9"),
        changed("a", "b", user="UBOT"),
        changed("a", "b", ts=None),
    ],
)
def test_previews_and_edits_of_bots_are_nothing(body: dict[str, Any]) -> None:
    assert parse(body, US) is None


def test_a_deletion_names_the_message_and_its_thread() -> None:
    event = {"type": "message", "subtype": "message_deleted", "channel": CHANNEL, "deleted_ts": TS}
    gone = Deletion(Thread("slack", "T1", CHANNEL, ROOT), KEY)
    before = {"user": "UANA", "ts": TS, "thread_ts": ROOT}
    assert parse(envelope(event | {"previous_message": before}), US) == gone
    assert parse(envelope(event | {"previous_message": before | {"bot_id": "BBOT"}}), US) is None


def test_a_root_that_leaves_a_tombstone_is_deleted_too() -> None:
    body = changed("why?", "This message was deleted.", subtype="tombstone", user="USLACKBOT")
    body["event"]["previous_message"]["user"] = "UANA"
    assert parse(body, US) == Deletion(Thread("slack", "T1", CHANNEL, ROOT), KEY)


def test_a_press_of_stop_names_the_turn_and_the_card() -> None:
    found = arrival(click())
    assert found.source is Source.STOP_REQUEST
    assert found.key == f"slack:T1:action:{CHANNEL}:{TS}:1700000007.000300:UANA"
    assert (found.stops_turn, found.message_ref, found.thread.thread) == ("turn-1", TS, ROOT)
    assert not found.may_open


@pytest.mark.parametrize(
    "more",
    [
        {"actions": [{"action_id": "other", "value": "turn-1", "action_ts": TS}]},
        {"actions": []},
        {"actions": [{"action_id": "watchkeeper_stop", "action_ts": TS}]},
        {"user": None},
        {"container": {}, "message": {}},
    ],
)
def test_other_presses_are_nothing(more: dict[str, Any]) -> None:
    assert parse(click(**more), US) is None


def test_a_card_outside_a_thread_is_its_own_thread() -> None:
    found = arrival(click(container={"message_ts": TS, "channel_id": CHANNEL}, message={}))
    assert found.thread.thread == TS


FIELDS = st.text(max_size=8) | st.sampled_from(
    [
        "type",
        "event",
        "channel",
        "ts",
        "thread_ts",
        "user",
        "text",
        "blocks",
        "elements",
        "subtype",
        "message",
        "previous_message",
        "files",
        "style",
        "authorizations",
        "team_id",
        "actions",
        "container",
        "action_id",
        "value",
        "bot_id",
        "bot_profile",
        "edited",
        "deleted_ts",
        "attachments",
        "action_ts",
        "app_id",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(FIELDS, JSON, max_size=8), st.sampled_from(["event_callback", "block_actions"]))
def test_no_payload_however_odd_raises(body: dict[str, Any], kind: str) -> None:
    parse(body | {"type": kind}, US)
    event = body.get("event")
    if isinstance(event, dict):
        for subtype in ("", "message_changed", "message_deleted", "bot_message"):
            more = {"type": "message", "channel": "C1", "ts": TS, "user": "UANA", "subtype": subtype}
            parse(envelope(event | more), US)

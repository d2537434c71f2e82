"""The Chat port against a Slack that enforces Slack's rules."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from bot.errors import Closed, Gone, OutcomeUnknown, Permanent, Rejected, Temporary
from bot.ports import Post
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from core.arrivals import Thread
from core.card import Card, CardLine, CardState, LineState
from core.reasons import Reason
from tests.bot.slack.conftest import show
from tests.servers.slack import SlackServer

LIVE = Card(
    "turn-1",
    CardState.LIVE,
    "why is checkout slow?",
    "Looking",
    "reading logs",
    (CardLine("a", "logs", LineState.RUNNING),),
    stoppable=True,
)
RELEASED = replace(LIVE, state=CardState.RELEASED, reason=Reason.COMPLETED, headline="Done")
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50
ANSWER = Post("p-1", "answer", "The deploy removed **an index**.", "turn-1", "e-1")


async def test_a_card_lives_and_is_released_in_one_message(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    ref = await show(chat, thread, None, LIVE)
    assert [message.ts for message in slack.live_cards()] == [ref]
    assert await show(chat, thread, ref, RELEASED) == ref
    assert slack.live_cards() == []
    assert slack.card_faults() == []
    assert slack.message(thread.channel, ref).thread_ts == thread.thread


async def test_an_answer_bears_its_metadata_and_unfurls_nothing(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    ref = await chat.post(thread, ANSWER)
    message = slack.message(thread.channel, ref)
    assert message.text == "The deploy removed *an index*."
    assert message.metadata is not None
    assert message.metadata["event_payload"]["final_event_id"] == "e-1"
    assert slack.card_faults() == []


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long"])
async def test_a_card_that_slack_refuses_is_drawn_more_plainly(
    slack: SlackServer, chat: SlackChat, thread: Thread, error: str
) -> None:
    slack.fail("chat.postMessage", error, times=1)
    ref = await show(chat, thread, None, LIVE)
    kinds = [block["type"] for block in slack.message(thread.channel, ref).blocks]
    assert "plan" not in kinds
    assert "actions" in kinds


async def test_words_are_the_last_resort(slack: SlackServer, chat: SlackChat, thread: Thread) -> None:
    ref = await show(chat, thread, None, LIVE)
    slack.fail("chat.update", "invalid_blocks", times=2)
    await show(chat, thread, ref, RELEASED)
    message = slack.message(thread.channel, ref)
    assert message.blocks == []
    assert "Done" in message.text
    assert slack.card_faults() == []


@pytest.mark.parametrize("error", ["msg_too_long", "invalid_blocks", "block_mismatch"])
async def test_the_state_is_said_in_one_line_where_slack_refuses_everything_else(
    slack: SlackServer, chat: SlackChat, thread: Thread, error: str
) -> None:
    ref = await show(chat, thread, None, LIVE)
    slack.fail("chat.update", error, times=3)
    await show(chat, thread, ref, RELEASED)
    assert slack.message(thread.channel, ref).text == "Done"
    assert slack.live_cards() == []
    assert slack.card_faults() == []


async def test_an_answer_that_is_refused_as_too_long_is_cut_and_says_so(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    slack.fail("chat.postMessage", "msg_too_long", times=2)
    ref = await chat.post(thread, replace(ANSWER, text="so it is. " * 200))
    text = slack.message(thread.channel, ref).text
    assert text.startswith("so it is. ")
    assert text.endswith("…")
    assert len(text) <= 1_000


async def test_somebody_is_told_directly_what_their_thread_takes_no_more(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    slack.lock_thread("#inc", thread.thread)
    with pytest.raises(Closed):
        await chat.post(thread, ANSWER)
    ref = await chat.tell_directly(thread, "U0ANA00001", replace(ANSWER, kind="undelivered"))
    told = slack.message(slack.workspace.dm("U0ANA00001").id, ref)
    assert (told.text, told.thread_ts) == ("The deploy removed *an index*.", None)
    assert slack.card_faults() == []


async def test_a_workspace_without_plans_is_not_asked_each_time(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    def has_plan(args: dict[str, object]) -> bool:
        return "plan" in str(args.get("blocks"))

    slack.fail("chat.postMessage", "invalid_blocks", times=None, when=has_plan)
    slack.fail("chat.update", "invalid_blocks", times=None, when=has_plan)
    ref = await show(chat, thread, None, LIVE)
    await show(chat, thread, ref, RELEASED)
    assert [call.ok for call in slack.calls_of("chat.postMessage")] == [False, True]
    assert [call.ok for call in slack.calls_of("chat.update")] == [True]


async def test_a_lost_answer_to_a_post_is_an_unknown_outcome_that_can_be_looked_up(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    since = time.time() - 5
    slack.lose_reply("chat.postMessage")
    with pytest.raises(OutcomeUnknown):
        await chat.post(thread, ANSWER)
    [found] = await chat.find(thread, since)
    assert (found.event_type, found.payload["post_id"]) == ("watchkeeper_answer", "p-1")
    assert len(slack.calls_of("chat.postMessage")) == 1


async def test_a_lost_answer_to_an_update_may_be_repeated(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    ref = await show(chat, thread, None, LIVE)
    slack.lose_reply("chat.update")
    with pytest.raises(Temporary) as lost:
        await show(chat, thread, ref, RELEASED)
    assert not isinstance(lost.value, OutcomeUnknown)
    await show(chat, thread, ref, RELEASED)
    assert slack.card_faults() == []


async def test_after_a_429_nothing_is_sent_before_its_time(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    ref = await show(chat, thread, None, LIVE)
    slack.rate_limit("chat.update", retry_after=1)
    with pytest.raises(Temporary) as limited:
        await show(chat, thread, ref, LIVE)
    assert limited.value.retry_after_s == 1
    await show(chat, thread, ref, RELEASED)
    assert slack.violations == []


async def test_what_was_deleted_is_gone(slack: SlackServer, chat: SlackChat, thread: Thread) -> None:
    ref = await show(chat, thread, None, LIVE)
    await chat.delete(thread, ref)
    await chat.delete(thread, ref)
    with pytest.raises(Gone):
        await show(chat, thread, ref, RELEASED)


@pytest.mark.parametrize(
    "answer, kind",
    [
        ((503, "x"), OutcomeUnknown),
        ((200, "is_archived"), Closed),
        ((200, "invalid_auth"), Rejected),
    ],
)
async def test_refusals_of_a_post_are_sorted(
    slack: SlackServer, chat: SlackChat, thread: Thread, answer: tuple[int, str], kind: type[Exception]
) -> None:
    slack.fail("chat.postMessage", answer[1], status=answer[0])
    with pytest.raises(kind) as refused:
        await chat.post(thread, ANSWER)
    assert type(refused.value) is kind


async def test_a_slack_out_of_reach_is_temporary_and_nothing_happened(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    await slack.down()
    with pytest.raises(Temporary) as failed:
        await chat.post(thread, ANSWER)
    assert not isinstance(failed.value, OutcomeUnknown) or "lost" in str(failed.value)
    await slack.up()
    await chat.post(thread, ANSWER)


async def test_receipts_change_places_without_standing_together(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    ref = thread.thread
    await chat.set_receipt(thread, ref, "eyes", None)
    await chat.set_receipt(thread, ref, "eyes", None)
    await chat.set_receipt(thread, ref, "white_check_mark", "eyes")
    await chat.set_receipt(thread, ref, "white_check_mark", "eyes")
    assert list(slack.reactions(ref)) == ["white_check_mark"]
    await chat.set_receipt(thread, ref, None, "white_check_mark")
    assert slack.reactions(ref) == {}
    assert slack.card_faults() == []


async def test_a_receipt_on_a_deleted_message_is_gone(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    reply = await slack.say("Ben", "#inc", "db-3?", thread=thread.thread)
    await slack.delete(reply)
    with pytest.raises(Gone):
        await chat.set_receipt(thread, reply, "eyes", None)


async def test_a_refusal_is_told_to_one_person_only(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    await chat.tell_privately(thread, "U0GUS00001", "Guests <!channel> may **not** steer.")
    [told] = slack.ephemerals
    assert (told.user, told.thread_ts) == ("U0GUS00001", thread.thread)
    assert told.text == "Guests &lt;!channel&gt; may *not* steer."
    assert len(slack.bot_messages()) == 0


async def test_a_private_word_goes_without_metadata_where_slack_takes_none(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    slack.fail("chat.postEphemeral", "invalid_arguments", when=lambda args: "metadata" in args)
    await chat.tell_privately(thread, "U0GUS00001", "no")
    await chat.tell_privately(thread, "U0GUS00001", "no")
    assert ["metadata" in call.args for call in slack.calls_of("chat.postEphemeral")] == [True, False, False]


async def test_a_chart_is_a_picture_in_a_message_of_ours(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    slack.state.file_processing_s = 0.7
    ref = await chat.post(thread, Post("p-2", "chart", "p99 of checkout", "turn-1", chart=PNG))
    message = slack.message(thread.channel, ref)
    assert [block["type"] for block in message.blocks] == ["section", "image"]
    assert message.metadata is not None
    assert message.metadata["event_payload"]["kind"] == "chart"
    assert [file.content for file in slack.files.values()] == [PNG]
    assert slack.card_faults() == []


async def test_find_gives_our_messages_since_a_time_and_no_others(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    first = await show(chat, thread, None, LIVE)
    await slack.say("Ben", "#inc", "anything?", thread=thread.thread)
    second = await chat.post(thread, ANSWER)
    assert [found.ref for found in await chat.find(thread, float(first))] == [first, second]
    assert [found.ref for found in await chat.find(thread, float(second))] == [second]


async def test_live_cards_are_found_in_all_channels(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    root = await slack.say("Ana", "#private", "and here?", mention=True)
    other = Thread("slack", thread.workspace, slack.workspace.channel("#private").id, root)
    live = await show(chat, other, None, replace(LIVE, turn_id="turn-2"))
    done = await show(chat, thread, None, LIVE)
    await show(chat, thread, done, RELEASED)
    assert [(t, card.ref) for t, card in await chat.live_cards(float(root) - 10)] == [(other, live)]


async def test_where_channels_may_not_be_listed_no_live_cards_are_known(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    await show(chat, thread, None, LIVE)
    slack.scopes.discard("channels:read")
    assert await chat.live_cards(0) == []


async def test_earlier_messages_are_in_words_and_without_ours(slack: SlackServer, chat: SlackChat) -> None:
    root = await slack.alert("#inc", "Checkout p99 above 2 s")
    await slack.say("Ben", "#inc", "looks like db-3 & friends", thread=root)
    thread = Thread("slack", slack.team_id, slack.workspace.channel("#inc").id, root)
    await chat.post(thread, ANSWER)
    late = await slack.say("Ana", "#inc", "look", thread=root, mention=True)
    earlier = await chat.earlier_messages(thread, float(late))
    assert [(m.author_name, m.is_bot, m.text) for m in earlier] == [
        ("Alertbot", True, "*Checkout p99 above 2 s*"),
        ("ben", False, "looks like db-3 & friends"),
    ]


async def test_earlier_messages_are_the_newest_and_the_root(slack: SlackServer, chat: SlackChat) -> None:
    root = await slack.say("Ana", "#inc", "root")
    for n in range(230):
        await slack.say("Ben", "#inc", f"reply {n}", thread=root)
    thread = Thread("slack", slack.team_id, slack.workspace.channel("#inc").id, root)
    texts = [message.text for message in await chat.earlier_messages(thread, time.time() + 60)]
    assert len(texts) == 200
    assert (texts[0], texts[1], texts[-1]) == ("root", "reply 31", "reply 229")


@pytest.mark.parametrize(
    "name, flags",
    [
        ("Ana", []),
        ("Gus", ["is_guest"]),
        ("Uma", ["is_guest"]),
        ("Xeno", ["is_external"]),
        ("Dee", ["is_deactivated"]),
        ("Alertbot", ["is_bot"]),
        ("Flow", ["is_bot"]),
    ],
)
async def test_people_are_who_slack_says_they_are(
    slack: SlackServer, chat: SlackChat, name: str, flags: list[str]
) -> None:
    author = await chat.author(slack.team_id, slack.workspace.user(name).id)
    held = [flag for flag in ("is_bot", "is_deactivated", "is_guest", "is_external") if getattr(author, flag)]
    assert (author.name, held) == (name.lower(), flags)


async def test_a_stranger_whom_slack_does_not_know_is_external(slack: SlackServer, chat: SlackChat) -> None:
    assert (await chat.author(slack.team_id, "U0NOBODY01")).is_external


async def test_a_bot_without_a_user_is_a_bot(slack: SlackServer, chat: SlackChat) -> None:
    assert (await chat.author(slack.team_id, "B0ALERT001")).is_bot
    assert slack.calls_of("users.info") == []


async def test_a_person_is_asked_about_once_in_a_while(slack: SlackServer, chat: SlackChat) -> None:
    for _ in range(3):
        await chat.author(slack.team_id, "U0ANA00001")
    assert len(slack.calls_of("users.info")) == 1


async def test_we_learn_who_we_are(slack: SlackServer, connection: Connection) -> None:
    with pytest.raises(Temporary):
        _ = connection.us
    us = await connection.connect()
    assert (us.team, us.user_id, us.bot_id, us.app_id) == (
        slack.team_id,
        slack.bot_user_id,
        "B0WATCH001",
        "A0WATCH001",
    )
    assert us.scopes == slack.scopes


async def test_a_rejected_token_is_permanent(slack: SlackServer, connection: Connection) -> None:
    connection.api.client.token = "xoxb-wrong"
    with pytest.raises(Permanent) as rejected:
        await connection.connect()
    assert rejected.value.code == "invalid_auth"


async def test_slack_out_of_reach_at_the_start_is_temporary(
    slack: SlackServer, connection: Connection
) -> None:
    await slack.down()
    with pytest.raises(Temporary):
        await connection.connect()
    assert "auth.test" in connection.reason
    await slack.up()
    assert await connection.connect()

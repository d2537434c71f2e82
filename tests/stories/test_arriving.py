"""What people write reaches an analysis once, however Slack delivers it, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.slack.state import Mentions
from tests.stories.looking import known_threads, told, until_all_decided, until_fates, until_stored
from tests.stories.room import Room, eventually
from tests.stories.telling import conversation, held, messages, must_be_well, release, until_reached

WORDS = "why is checkout slow?"


async def answered_once(room: Room, ts: str) -> None:
    """One message, one turn, one answer, and the words once before the model."""
    await room.until_settled("completed")
    await room.slack.events_settled(10)
    assert [m["text"] for m in await messages(room, ts)] == [WORDS]
    assert len(room.model.requests) == 1
    assert told(room, WORDS) == 1
    assert len(room.posts("watchkeeper_answer")) == 1
    assert room.slack.reactions(ts) == {"white_check_mark": [room.slack.bot_user_id]}
    await must_be_well(room)


@pytest.mark.parametrize("socket_mode", [True, False], ids=["socket", "http"])
@pytest.mark.parametrize("events", list(Mentions), ids=lambda events: events.name)
async def test_a_mention_is_one_message_whichever_events_bring_it(
    tmp_path: Path, events: Mentions, socket_mode: bool
) -> None:
    async with Room(tmp_path, socket_mode=socket_mode) as room:
        await room.start()
        room.model.script(reply(text("it is the deploy")))
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True, events=events)
        await answered_once(room, ts)


@pytest.mark.parametrize("socket_mode", [True, False], ids=["socket", "http"])
async def test_a_mention_delivered_three_times_and_out_of_order_is_one_message(
    tmp_path: Path, socket_mode: bool
) -> None:
    async with Room(tmp_path, socket_mode=socket_mode) as room:
        await room.start()
        room.model.script(reply(text("it is the deploy")))
        room.slack.hold_events()
        room.slack.duplicate_event(3)
        room.slack.duplicate_event(3)
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        room.slack.release_events(reverse=True)
        await answered_once(room, ts)


async def test_an_event_whose_acknowledgement_was_lost_has_no_second_effect(tmp_path: Path) -> None:
    slack = {"ack_timeout": 0.3, "retry_delays": (0.0, 0.3)}
    async with Room(tmp_path, slack=slack) as room:
        await room.start()
        room.model.script(reply(text("it is the deploy")))
        room.slack.drop_event_acks(3)
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await answered_once(room, ts)
        assert any(len(delivery.attempts) > 1 for delivery in room.slack.deliveries)


@pytest.mark.parametrize("reason", ["refresh_requested", "warning"])
async def test_a_message_written_while_the_socket_is_refreshed_is_answered(
    tmp_path: Path, reason: str
) -> None:
    async with Room(tmp_path, slack={"retry_delays": (0.2, 0.5, 1.0, 2.0)}) as room:
        await room.start()
        room.model.script(reply(text("it is the deploy")))
        await room.slack.refresh_sockets(reason)
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await answered_once(room, ts)


async def test_replies_that_come_in_the_wrong_order_are_read_in_the_order_of_their_writing(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path, gather_s=0.3) as room:
        await room.start()
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think "), gate, text("so")), reply(text("it is the deploy")))
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await gate.reached(timeout=20)
        room.slack.hold_events()
        await room.slack.say("Ben", "#inc", "first this", thread=ts)
        await room.slack.say("Ben", "#inc", "then that", thread=ts)
        room.slack.release_events(reverse=True)
        await room.until_settled("steered", "completed")
        said = "".join(room.model.last_request.user_texts())
        assert 0 < said.index("first this") < said.index("then that")
        await must_be_well(room)


@pytest.mark.slow
async def test_a_process_killed_between_storing_and_acknowledging_has_the_message_once(
    tmp_path: Path,
) -> None:
    slack = {"ack_timeout": 0.5, "retry_delays": (0.3, 1.0, 2.0, 4.0)}
    async with Room(tmp_path, slack=slack) as room:
        room.slack.fail("users.info", "fatal_error", times=None)  # nothing is decided before the kill
        await room.start_process()
        room.model.reply_always("it is the deploy")
        room.slack.drop_event_acks(1000)
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await until_stored(room, ts, 1)
        await room.kill()
        room.slack.heal()
        room.slack.drop_event_acks(-room.slack.state.sockets.drop_acks)
        await room.start_process()
        await answered_once(room, ts)


async def test_a_mention_inside_a_thread_starts_there_and_the_thread_becomes_context(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        root = await room.slack.bot_says(
            "Alertbot", "#inc", "",
            blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "*Checkout latency* is 4.2 s"}}],
            attachments=[{"color": "danger", "title": "HighLatency", "fallback": "HighLatency",
                          "fields": [{"title": "cluster", "value": "eu-7", "short": True}]}],
        )  # fmt: skip
        await room.slack.say("Ben", "#inc", "saw it at 14:05", thread=root)
        room.model.script(reply(text("it is the deploy")), reply(text("the same")))
        await room.slack.say("Ana", "#inc", WORDS, mention=True, thread=root)
        [record] = await room.until_settled("completed")
        assert record["thread"] == root
        first = "".join(room.model.requests[0].user_texts())
        for words in ("Checkout latency", "4.2 s", "HighLatency", "eu-7", "saw it at 14:05", WORDS):
            assert first.count(words) == 1, words
        assert first.index("eu-7") < first.index("saw it at 14:05") < first.index(WORDS)
        await room.slack.say("Ana", "#inc", "and now?", mention=True, thread=root)
        await room.until_settled("completed", "completed")
        assert told(room, "saw it at 14:05") == 1
        people = [m for m in await messages(room, root) if "it is the deploy" in m["text"]]
        assert people == []
        await must_be_well(room)


async def test_what_is_none_of_our_business_is_acknowledged_and_not_stored(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await room.slack.say("Ana", "#inc", "lunch?")
        await room.slack.say("Ben", "#inc", "yes", thread=ts)
        await room.slack.say("Ben", "#inc", "write `@bot why?` to ask it")
        await room.slack.bot_says("Alertbot", "#inc", "all is well")
        await room.slack.edit(ts, "dinner?")
        await room.slack.delete(ts)
        await room.slack.events_settled(10)
        assert all(delivery.acked for delivery in room.slack.deliveries)
        await asyncio.sleep(0.3)
        assert await known_threads(room) == []
        assert room.slack.bot_messages() == []
        assert room.model.requests == []


@pytest.mark.parametrize("who", ["Alertbot", "Flow"])
async def test_a_mention_by_a_bot_is_denied_without_a_word(tmp_path: Path, who: str) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await room.slack.bot_says(who, "#inc", f"<@{room.slack.bot_user_id}> checkout is slow")
        await until_all_decided(room, ts, 1)
        [message] = await messages(room, ts)
        assert (message["effect"], message["fate"]) == ("deny", "denied")
        await must_be_well(room)
        assert room.slack.bot_messages() == []
        assert room.slack.ephemerals == []
        assert room.slack.reactions(ts) == {}


async def test_a_mention_with_a_file_and_a_reply_that_is_broadcast_are_heard(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think "), gate, text("so")), reply(text("it is the deploy")))
        ts = await room.slack.say(
            "Ana", "#inc", WORDS, mention=True, files=["graph.png"], events=Mentions.MESSAGE_ONLY
        )
        await gate.reached(timeout=20)
        await room.slack.say("Ben", "#inc", "look at eu-7", thread=ts, broadcast=True)
        await room.until_settled("steered", "completed")
        assert told(room, WORDS) == 1
        assert told(room, "look at eu-7") == 1
        await must_be_well(room)


@pytest.mark.parametrize("who", ["Gus", "Uma", "Xeno", "Dee"])
async def test_guests_and_outsiders_are_told_privately_once_that_they_may_not(
    tmp_path: Path, who: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think "), gate, text("so")))
        ts = await room.slack.say("Ana", "#shared", WORDS, mention=True)
        await gate.reached(timeout=20)
        for words in ("delete the database", "now please"):
            await room.slack.say(who, "#shared", words, mention=True, thread=ts)
        await room.slack.say(who, "#shared", "!stop", thread=ts)
        await until_fates(
            room, f"slack:{room.slack.team_id}:C0SHARED01:{ts}", "read", "denied", "denied", "denied"
        )
        await eventually(lambda: _said_privately(room), timeout=10)
        gate.release()
        await room.until_settled("completed")
        await must_be_well(room)
        assert [note.user for note in room.slack.ephemerals] == [room.slack.workspace.user(who).id]
        assert room.slack.ephemerals[0].thread_ts == ts
        assert not any("database" in said for r in room.model.requests for said in r.user_texts())


async def _said_privately(room: Room) -> bool:
    return bool(room.slack.ephemerals)


# --- edits and deletions ------------------------------------------------------------------------------------

Act = Callable[[Room, str, str], Awaitable[None]]


async def while_a_call_holds(room: Room, act: Act) -> str:
    """Ben replies while a call with side effects runs and nobody reads him yet; then something happens."""
    await room.start()
    room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy")))
    ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
    await until_reached(room, "w")
    reply_ts = await room.slack.say("Ben", "#inc", "look at eu-7", thread=ts)
    await until_all_decided(room, ts, 2)
    await act(room, ts, reply_ts)
    release(room, "w")
    return ts


async def test_an_edit_of_an_unread_message_replaces_it(tmp_path: Path) -> None:
    async def edit(room: Room, ts: str, reply_ts: str) -> None:
        await room.slack.edit(reply_ts, "look at us-3")
        await until_all_decided(room, ts, 3)

    async with Room(tmp_path) as room:
        ts = await while_a_call_holds(room, edit)
        await room.until_settled("steered", "completed")
        fates = {m["text"]: m["fate"] for m in await messages(room, ts)}
        assert fates["look at eu-7"] == "replaced"
        assert fates["look at us-3"] == "read"
        assert told(room, "us-3") == 1
        assert told(room, "eu-7") == 0
        await must_be_well(room)


async def test_a_deleted_unread_message_is_withdrawn_and_the_work_goes_on(tmp_path: Path) -> None:
    async def delete(room: Room, ts: str, reply_ts: str) -> None:
        await room.slack.delete(reply_ts)
        await until_fates(room, conversation(room, ts), "read", "withdrawn")

    async with Room(tmp_path) as room:
        await while_a_call_holds(room, delete)
        await must_be_well(room)
        assert (await room.reasons())[-1] == "completed"
        assert told(room, "eu-7") == 0


async def test_a_mention_deleted_before_it_was_read_starts_nothing(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.slack.hold_events()
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await room.slack.delete(ts)
        slow = room.slack.hang("users.info")
        room.slack.release_events()
        await until_fates(room, conversation(room, ts), "withdrawn")
        slow.release()
        await asyncio.sleep(0.3)
        assert room.model.requests == []
        assert await room.settles() == []
        await must_be_well(room)


async def test_edits_and_deletions_of_read_messages_become_notes_and_interrupt_nothing(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.model.script(
            reply(held(room, "r")),
            reply(text("it is the deploy")),
            reply(text("still")),
        )
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await until_reached(room, "r")
        await room.slack.edit(ts, "why is login slow?", mention=True)
        await until_stored(room, ts, 2)
        await room.slack.unfurl(ts)
        release(room, "r")
        await room.until_settled("completed")
        assert len(room.model.requests) == 2
        await room.slack.delete(ts)
        await until_stored(room, ts, 3)
        await room.slack.say("Ana", "#inc", "and now?", thread=ts)
        await room.until_settled("completed", "completed")
        said = "".join(room.model.last_request.user_texts())
        assert said.count("why is login slow?") >= 1
        assert "deleted an earlier message" in said
        await must_be_well(room)


async def test_a_mention_that_is_edited_in_starts_nothing(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await room.slack.say("Ana", "#inc", "checkout is slow")
        await room.slack.edit(ts, WORDS, mention=True)
        await room.slack.events_settled(10)
        await asyncio.sleep(0.3)
        assert await known_threads(room) == []
        assert room.model.requests == []


@pytest.mark.parametrize("words", ["look at us-3", "later: look at us-3"])
async def test_an_edit_while_its_receipt_is_on_its_way_leaves_one_reaction(
    tmp_path: Path, words: str
) -> None:
    async with Room(tmp_path) as room:
        slow = room.slack.hang(
            "reactions.add", when=lambda args: room.slack.workspace.message(args["timestamp"]).is_reply
        )

        async def edit(room: Room, ts: str, reply_ts: str) -> None:
            await room.slack.wait_for(lambda _: slow.waiting > 0)
            await room.slack.edit(reply_ts, words)
            await until_all_decided(room, ts, 3)

        ts = await while_a_call_holds(room, edit)
        await room.until_settled("steered", "completed")
        slow.release()
        await must_be_well(room)
        for message in room.slack.thread("#inc", ts):
            assert set(room.slack.reactions(message.ts)) <= {"white_check_mark"}


async def test_edits_and_deletions_that_are_delivered_again_are_told_once(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.model.script(reply(text("it is the deploy")), reply(text("still")))
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await room.until_settled("completed")
        room.slack.duplicate_event(3)
        await room.slack.edit(ts, "why is login slow?")
        await until_stored(room, ts, 2)
        room.slack.duplicate_event(3)
        await room.slack.delete(ts)
        await until_stored(room, ts, 3)
        await room.slack.events_settled(10)
        await room.slack.say("Ana", "#inc", "and now?", thread=ts)
        await room.until_settled("completed", "completed")
        assert len(await messages(room, ts)) == 4
        assert told(room, "changed an earlier message") == 1
        assert told(room, "deleted an earlier message") == 1
        await must_be_well(room)


@pytest.mark.parametrize("error", ["missing_scope", "thread_not_found", "service_unavailable"])
async def test_where_the_thread_cannot_be_read_the_work_starts_and_the_model_is_told(
    tmp_path: Path, error: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        root = await room.slack.alert("#inc", "HighLatency")
        room.slack.fail("conversations.replies", error, times=None)
        room.model.script(reply(text("it is the deploy")))
        await room.slack.say("Ana", "#inc", WORDS, mention=True, thread=root)
        await room.until_settled("completed")
        assert told(room, "could not be read") == 1
        await must_be_well(room)


async def test_slack_out_of_reach_at_the_start_is_waited_for(tmp_path: Path) -> None:
    async with Room(tmp_path, slack={"retry_delays": (0.5, 1.0, 2.0, 4.0)}) as room:
        room.model.script(reply(text("it is the deploy")))
        await room.slack.down()
        starting = asyncio.create_task(room.start())
        await asyncio.sleep(1)
        await room.slack.up()
        await starting
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await answered_once(room, ts)


EVERYTHING = (
    "users.info",
    "reactions.add",
    "reactions.remove",
    "chat.postMessage",
    "chat.update",
    "conversations.replies",
)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["limited", "lost", "down"])
async def test_whatever_call_slack_troubles_once_the_message_has_its_one_effect(
    tmp_path: Path, trouble: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        root = await room.slack.alert("#inc", "HighLatency")
        for method in EVERYTHING:
            if trouble == "limited":
                room.slack.rate_limit(method)
            elif trouble == "lost":
                room.slack.lose_reply(method)
            else:
                room.slack.fail(method, "service_unavailable", status=503)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True, thread=root)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=20)
        release(room, "r")
        await room.until_settled("completed")
        await must_be_well(room)
        assert room.slack.reactions(ts) == {"white_check_mark": [room.slack.bot_user_id]}
        assert len(room.posts("watchkeeper_answer")) == 1
        assert len(room.posts("watchkeeper_card")) == 1


async def test_a_reply_that_comes_after_its_own_edit_or_deletion_is_read_as_it_is_by_now(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy")))
        ts = await room.slack.say("Ana", "#inc", WORDS, mention=True)
        await until_reached(room, "w")
        room.slack.hold_events()
        edited = await room.slack.say("Ben", "#inc", "look at eu-7", thread=ts)
        deleted = await room.slack.say("Ben", "#inc", "look at ap-2", thread=ts)
        await room.slack.edit(edited, "look at us-3")
        await room.slack.delete(deleted)
        room.slack.release_events(reverse=True)
        await until_stored(room, ts, 5)
        await until_all_decided(room, ts, 2)
        release(room, "w")
        await room.until_settled("steered", "completed")
        assert [told(room, where) for where in ("us-3", "eu-7", "ap-2")] == [1, 0, 0]
        await must_be_well(room)

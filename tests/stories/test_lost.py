"""Processes that die, drain and come back: every turn ends with a record, and work goes on or is told of."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.stories.looking import told, until_all_decided
from tests.stories.room import Room, eventually
from tests.stories.telling import (
    CARD,
    ask,
    calls_of,
    conversation,
    held,
    messages,
    must_be_well,
    notes,
    quiet,
    release,
    reply_to,
    until_reached,
)

pytestmark = pytest.mark.slow

SOON = {"retry_delays": (0.3, 1.0, 2.0, 4.0)}


async def restarted(room: Room) -> None:
    """The process dies with kill -9 and the next one starts."""
    await room.kill()
    await room.start_process()


def results(request: ModelRequest) -> str:
    """What the calls came back with, all of them."""
    return "\n".join(result.text for result in request.tool_results().values())


async def test_a_process_killed_while_the_model_speaks_resumes_on_the_same_card(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think "), gate, text("so")), reply(text("it is the deploy")))
        await ask(room)
        await gate.reached(timeout=20)
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        await restarted(room)
        first, second = await room.until_settled("stale", "completed")
        assert second["resumes_turn_id"] == first["turn_id"]
        assert len(room.slack.of_type(CARD)) == 1
        await must_be_well(room)


async def test_after_a_kill_in_a_batch_reads_run_again_and_writes_do_not(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        room.model.script(
            reply(
                held(room, "r"), held(room, "w", "probe__hold_write"), call("probe__fast", {"text": "done"})
            ),
            reply(text("it is the deploy [c1]")),
        )
        ts = await ask(room)
        await until_reached(room, "r", "w")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)

        async def one_is_recorded() -> bool:
            return "ok" in [one["state"] for one in await calls_of(room, ts)]

        await eventually(one_is_recorded, timeout=10)
        (tmp_path / "r.reached").unlink()
        await restarted(room)
        await until_reached(room, "r")
        release(room, "r", "w")
        first, second = await room.until_settled("stale", "completed")
        assert second["resumes_turn_id"] == first["turn_id"]
        started = [event["tool"] for event in room.tool_events()]
        assert (started.count("hold"), started.count("hold_write"), started.count("fast")) == (2, 1, 1)
        assert "r was released" in results(room.model.last_request)
        assert "outcome unknown" in results(room.model.last_request)
        assert len(room.slack.of_type(CARD)) == 1
        await must_be_well(room)


async def test_after_a_kill_before_the_card_was_released_the_next_start_releases_it(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        room.slack.fail("chat.update", "service_unavailable", times=None)
        release(room, "r")
        await eventually(lambda: has_settled(room), timeout=20)
        await room.kill()
        assert room.slack.live_cards()
        room.slack.heal()
        await room.start_process()
        await room.until_settled("completed")
        assert len(room.slack.of_type(CARD)) == 1
        await must_be_well(room)


async def has_settled(room: Room) -> bool:
    return bool(await room.settles())


async def test_three_lost_turns_in_a_row_are_given_up_with_a_word(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        gates = [room.model.gate(str(number)) for number in range(3)]
        room.model.script(*(reply(text("I think "), gate, text("so")) for gate in gates))
        await ask(room)
        for gate in gates:
            await gate.reached(timeout=20)
            await restarted(room)
        await room.until_settled("stale", "stale", "failed")
        await room.slack.wait_for(lambda _: notes(room, "failed"), timeout=10)
        assert "three times" in notes(room, "failed")[0]
        assert len(room.model.requests) == 3
        await must_be_well(room)


async def test_a_stop_while_the_process_is_dead_ends_the_work(tmp_path: Path) -> None:
    async with Room(tmp_path, slack=SOON) as room:
        await room.start_process()
        room.model.reply_with(lambda _: reply(held(room, "r")))
        ts = await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        await room.kill()
        await room.slack.say("Ben", "#inc", "!stop", thread=ts)
        await room.start_process()
        await until_all_decided(room, ts, 2)  # until then the call, which runs again, holds the turn back
        release(room, "r")
        await must_be_well(room)
        # Stored while the turn ran on: that turn is stopped. Stored between two turns: the next one is.
        assert await room.reasons() in (["stopped"], ["stale", "stopped"])
        assert len(room.model.requests) == 1


async def test_work_whose_worker_was_lost_too_long_ago_is_ended_and_the_thread_is_told(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path, worker="resume_within_s = 4") as room:
        await room.start_process()
        room.model.script(reply(held(room, "r"), held(room, "w", "probe__hold_write")), reply(text("again")))
        ts = await ask(room)
        await until_reached(room, "r", "w")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        await room.kill()
        await asyncio.sleep(4.5)
        await room.start_process()
        await room.until_settled("failed")
        await room.slack.wait_for(lambda _: notes(room, "failed"), timeout=10)
        await must_be_well(room)
        await room.slack.say("Ana", "#inc", "go on", thread=ts)
        await room.until_settled("failed", "completed")
        assert told(room, "go on") == 1
        await must_be_well(room)


async def test_a_mention_that_waited_too_long_is_set_aside_and_the_thread_is_told(tmp_path: Path) -> None:
    async with Room(tmp_path, worker="resume_within_s = 0.5") as room:
        unknown = room.slack.hang("users.info", times=None)
        await room.start_process()
        ts = await ask(room)
        await room.slack.wait_for(lambda _: unknown.waiting, timeout=10)
        await room.kill()
        room.slack.heal()
        await asyncio.sleep(1)
        await room.start_process()
        await room.slack.wait_for(lambda _: notes(room, "expired"), timeout=20)
        assert [m["fate"] for m in await messages(room, ts)] == ["context"]
        assert room.model.requests == []
        await must_be_well(room)


async def test_a_card_whose_post_outlived_the_process_is_found_by_the_next_one(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        post = room.slack.hang("chat.postMessage", applied=True)
        room.model.reply_with(lambda _: reply(held(room, "r")))
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda _: post.waiting, timeout=10)
        await restarted(room)
        release(room, "r")
        await room.until_settled("stale", "completed")
        assert len(room.slack.of_type(CARD)) == 1
        await must_be_well(room)


async def test_an_answer_half_posted_by_a_process_that_died_is_finished_by_the_next(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        second = room.slack.hang(
            "chat.postMessage", applied=True, when=lambda args: '"part": 2' in str(args.get("metadata"))
            or "'part': 2" in str(args.get("metadata")),
        )  # fmt: skip
        room.model.script(reply(text("\n\n".join(f"{n}. {'so it is. ' * 90}" for n in range(12)))))
        await ask(room)
        await room.slack.wait_for(lambda _: second.waiting, timeout=20)
        await restarted(room)
        await room.until_settled("completed")
        parts = [(part["part"], part["parts"]) for part in room.posts("watchkeeper_answer")]
        assert parts == [(n + 1, len(parts)) for n in range(len(parts))]
        assert len(parts) > 2
        await must_be_well(room)


# --- cards that no record knows -----------------------------------------------------------------------------


def forget_everything(room: Room) -> None:
    """The disk is lost."""
    for path in room.folder.glob("watchkeeper.db*"):
        path.unlink()


async def dies_with_a_live_card(room: Room) -> str:
    """An analysis whose process dies, its card still live."""
    await room.start_process()
    room.model.script(reply(held(room, "r")))
    ts = await ask(room)
    await until_reached(room, "r")
    await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
    await room.kill()
    forget_everything(room)
    return ts


async def test_at_a_start_without_records_live_cards_are_released_as_lost(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await dies_with_a_live_card(room)
        await room.start_process()
        await room.slack.wait_for(lambda slack: not slack.live_cards(), timeout=20)
        [card] = room.slack.of_type(CARD)
        assert card.metadata is not None
        assert card.metadata["event_payload"]["reason"] == "stale"
        assert room.slack.card_faults() == []


async def test_a_mention_at_that_very_start_keeps_no_lost_card_alive_and_loses_no_card_of_its_own(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path, slack=SOON) as room:
        await dies_with_a_live_card(room)
        gate = room.model.gate("middle")
        room.model.script(reply(text("I think "), gate, text("so")))
        listing = room.slack.hang("users.conversations", times=None)
        await room.slack.say("Ana", "#inc", "and login?", mention=True)
        await room.start_process()
        await gate.reached(timeout=20)
        await room.slack.wait_for(lambda slack: len(slack.live_cards()) == 2, timeout=10)
        listing.release()
        await room.slack.wait_for(lambda slack: len(slack.live_cards()) == 1, timeout=20)
        await quiet(1)
        gate.release()
        await room.until_settled("completed")
        await must_be_well(room)


async def test_lost_cards_are_released_though_slack_could_not_list_them_at_first(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await dies_with_a_live_card(room)
        room.slack.fail("users.conversations", "service_unavailable")
        room.slack.rate_limit("conversations.replies")
        await room.start_process()
        await room.slack.wait_for(lambda slack: not slack.live_cards(), timeout=20)
        assert room.slack.violations == []


async def test_a_stop_on_a_card_of_an_unknown_turn_releases_it(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await dies_with_a_live_card(room)
        [card] = room.slack.live_cards()
        room.slack.fail("users.conversations", "missing_scope", times=None)  # so that the start cannot help
        await room.start_process()
        await quiet(0.5)
        assert room.slack.live_cards()
        assert await room.slack.click(card.ts, "watchkeeper_stop", "Ben")
        await room.slack.wait_for(lambda slack: not slack.live_cards(), timeout=10)
        assert room.slack.card_faults() == []


# --- drains -------------------------------------------------------------------------------------------------


async def test_a_drain_in_a_batch_is_resumed_by_the_next_start(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy [c1]")))
        await ask(room)
        await until_reached(room, "w")
        stopping = asyncio.create_task(room.stop())
        await asyncio.sleep(0.5)
        assert await room.settles() == []
        release(room, "w")
        assert await stopping == 0
        [drained] = await room.settles()
        assert drained["reason"] == "drained"
        assert drained["card_released_at"]
        await room.start_process()
        _, completed = await room.until_settled("drained", "completed")
        assert completed["resumes_turn_id"] == drained["turn_id"]
        assert "w was released" in results(room.model.last_request)
        assert len([event for event in room.tool_events() if event["tool"] == "hold_write"]) == 1
        await must_be_well(room)


async def test_a_call_that_outlasts_the_drain_is_left_to_the_next_start_as_unknown(tmp_path: Path) -> None:
    async with Room(tmp_path, drain_timeout_s=1) as room:
        await room.start_process()
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy [c1]")))
        await ask(room)
        await until_reached(room, "w")
        began = time.monotonic()
        assert await room.stop() == 0
        assert time.monotonic() - began < 8
        await room.start_process()
        await room.until_settled("stale", "completed")
        assert "outcome unknown" in results(room.model.last_request)
        assert len([event for event in room.tool_events() if event["tool"] == "hold_write"]) == 1
        await must_be_well(room)


async def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    async with Room(tmp_path, drain_timeout_s=30) as room:
        await room.start_process()
        room.model.script(reply(held(room, "w", "probe__hold_write")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "w")
        assert room.process is not None
        room.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        assert room.process.returncode is None
        began = time.monotonic()
        room.process.send_signal(signal.SIGTERM)
        assert await room.process.wait() != 0
        assert time.monotonic() - began < 1
        room.slack.cut_sockets()
        await room.start_process()
        await room.until_settled("stale", "completed")
        await must_be_well(room)


async def test_a_steer_that_waited_through_a_kill_is_read_by_the_next_turn_and_nothing_runs_again(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()

        def answer(request: ModelRequest) -> Reply:
            return reply(text("it is the deploy")) if request.calls() else reply(held(room, "r"))

        room.model.reply_with(answer)
        ts = await ask(room)
        await until_reached(room, "r")
        await reply_to(room, ts, "look at eu-7")
        await restarted(room)
        await room.until_settled("stale", "completed")
        assert told(room, "look at eu-7") == 1
        assert len([event for event in room.tool_events() if event["tool"] == "hold"]) == 1
        assert conversation(room, ts) in {r["conversation_id"] for r in await room.settles()}
        await must_be_well(room)

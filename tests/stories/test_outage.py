"""Slack away, limiting or rejecting us for a while: nothing is lost, and afterwards nobody storms it."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import aiohttp
import pytest

from core.history import Json
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import forbidden, reply
from tests.stories.room import Room, eventually
from tests.stories.telling import (
    ANSWER,
    CARD,
    ask,
    card_posts,
    held,
    is_released,
    must_be_well,
    notes,
    quiet,
    release,
    until_reached,
    works,
)


async def settled(room: Room, count: int = 1) -> bool:
    return len(await room.settles()) == count


async def until_rested(room: Room, count: int) -> None:
    """Wait until so many turns have ended, their cards released and their answers posted."""

    async def all_shown() -> bool:
        records = await room.settles()
        return len(records) == count and all(r["card_released_at"] and r["answer_posted_at"] for r in records)

    await eventually(all_shown, timeout=40)


async def readiness(room: Room) -> tuple[int, list[str]]:
    """What /readyz says."""
    url = f"http://127.0.0.1:{room.port}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, list(json.loads(await answer.text())["reasons"])


# --- away ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("refuse", [True, False], ids=["refused", "503"])
async def test_a_whole_analysis_during_an_outage_is_shown_afterwards(tmp_path: Path, refuse: bool) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        room.slack.hang("chat.postMessage", times=None)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        await room.slack.down(refuse=refuse)
        room.slack.heal()
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)
        await quiet(0.5)
        assert room.slack.of_type(ANSWER) == []
        await room.slack.up()
        await room.until_settled("completed")
        assert len(room.slack.of_type(CARD)) == 1
        assert len(room.posts(ANSWER)) == 1
        await must_be_well(room)


@pytest.mark.slow
async def test_after_an_outage_all_is_shown_at_once_at_slacks_pace_and_releases_go_first(
    tmp_path: Path,
) -> None:
    """The outage lasts until pauses have grown beyond what anybody would wait for afterwards."""
    async with Room(tmp_path, rate_factor=1, slack={"rate_scale": 1}) as room:
        await room.start()
        room.model.reply_with(
            lambda request: reply(text("done")) if request.calls() else reply(held(room, "r"))
        )
        for _ in range(4):
            await ask(room)
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: len(slack.live_cards()) == 4, timeout=20)
        before = len(room.slack.calls)
        await room.slack.down(refuse=False)
        release(room, "r")
        await eventually(lambda: settled(room, 4), timeout=20)
        await quiet(14)
        back = len(room.slack.calls)
        assert back == before  # the test Slack counts no call that it answered with 503
        await room.slack.up()
        await room.slack.wait_for(lambda slack: not slack.live_cards(), timeout=20)
        await until_rested(room, 4)
        updates = [call for call in room.slack.calls[back:] if call.method == "chat.update" and call.ok]
        assert len(updates) == 4
        assert all(is_released(call.args) for call in updates)
        assert [call for call in room.slack.calls if call.status == HTTPStatus.TOO_MANY_REQUESTS] == []
        await must_be_well(room)


async def test_while_slack_is_away_readyz_says_so_and_afterwards_no_more(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        room.slack.fail("*", "service_unavailable", times=None)
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)

        async def unready() -> bool:
            status, reasons = await readiness(room)
            return status == HTTPStatus.SERVICE_UNAVAILABLE and "Slack is out of reach" in reasons[0]

        await eventually(unready, timeout=20)
        room.slack.heal()
        await room.until_settled("completed")
        assert await readiness(room) == (HTTPStatus.OK, [])
        await must_be_well(room)


# --- limited ------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_in_a_storm_of_limits_only_the_newest_state_is_sent_and_when_slack_said(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room, "r", "s")
        for method in ("chat.update", "chat.postMessage"):
            room.slack.rate_limit(method, retry_after=1, times=2)
        taken = len([call for call in room.slack.calls_of("chat.update") if call.ok])
        release(room, "r")
        await until_reached(room, "s")
        release(room, "s")
        await room.until_settled("completed")
        updates = [call for call in room.slack.calls_of("chat.update") if call.ok][taken:]
        assert [is_released(call.args) for call in updates] == [True]
        assert room.slack.violations == []
        await must_be_well(room)


@pytest.mark.slow
async def test_after_a_storm_a_release_goes_before_progress(tmp_path: Path) -> None:
    async with Room(tmp_path, rate_factor=1, slack={"rate_scale": 1}) as room:
        await room.start()
        room.model.script(
            reply(held(room, "a")), reply(held(room, "b")), reply(text("done")), reply(held(room, "c"))
        )
        await ask(room)
        await until_reached(room, "a")
        await ask(room)
        await until_reached(room, "b")
        await room.slack.wait_for(lambda slack: len(slack.live_cards()) == 2, timeout=20)
        storm = room.slack.rate_limit("chat.update", retry_after=1, times=1)
        taken = len(room.slack.calls_of("chat.update"))
        release(room, "a")
        await eventually(lambda: settled(room), timeout=20)
        release(room, "b")
        await until_reached(room, "c")
        await room.slack.wait_for(
            lambda slack: storm.hit and any(c.ok for c in slack.calls_of("chat.update")[taken:]), timeout=10
        )
        [first, *_] = [call for call in room.slack.calls_of("chat.update")[taken:] if call.ok]
        assert is_released(first.args)
        assert room.slack.violations == []
        room.model.script(reply(text("done")))
        release(room, "c")
        await until_rested(room, 2)
        await must_be_well(room)


# --- rejected -----------------------------------------------------------------------------------------------


async def test_a_revoked_token_is_said_with_its_mend_and_all_waits_for_it(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        room.slack.revoke("token_revoked")
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)

        async def unready() -> bool:
            status, reasons = await readiness(room)
            return (
                status == HTTPStatus.SERVICE_UNAVAILABLE and "SLACK_BOT_TOKEN (token_revoked)" in reasons[0]
            )

        await eventually(unready, timeout=20)
        await quiet(0.5)
        assert len([call for call in room.slack.calls if call.error == "token_revoked"]) <= 4
        room.slack.restore()
        await room.until_settled("completed")
        assert await readiness(room) == (HTTPStatus.OK, [])
        await must_be_well(room)


@pytest.mark.slow
async def test_what_was_owed_when_the_token_was_revoked_is_shown_by_the_start_with_a_new_one(
    tmp_path: Path,
) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        await works(room)
        room.slack.revoke("token_revoked")
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)
        await room.stop()
        [owed] = await room.settles()
        assert (owed["card_released_at"], owed["answer_posted_at"]) == (None, None)
        assert (owed["card_given_up"], owed["answer_given_up"]) == (None, None)
        room.slack.restore()
        await room.start_process()
        await room.until_settled("completed")
        assert len(room.slack.of_type(CARD)) == 1
        await must_be_well(room)


async def test_a_missing_right_to_post_is_waited_for_and_named(tmp_path: Path) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        await works(room)
        room.slack.scopes.discard("chat:write")
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)

        async def named() -> bool:
            _, reasons = await readiness(room)
            return any("missing_scope (chat:write)" in reason for reason in reasons)

        await eventually(named, timeout=20)
        room.slack.scopes.add("chat:write")
        await room.until_settled("completed")
        await must_be_well(room)


# --- lost answers -------------------------------------------------------------------------------------------

LONG = "\n\n".join(f"{n}. {'so it is. ' * 90}" for n in range(12))


def shows(what: str, args: dict[str, Json]) -> bool:
    """Whether a call posts this: a card, the second part of an answer, or a note."""
    metadata = str(args.get("metadata")).replace("'", '"')
    second = '"part": 2,' in metadata and ANSWER in metadata
    return {"card": CARD in metadata, "answer": second, "note": '"kind": "failed"' in metadata}[what]


def script(room: Room, what: str) -> None:
    """An analysis that says this."""
    room.model.script(reply(held(room, "r")), forbidden() if what == "note" else reply(text(LONG)))


async def has_ended(room: Room, reason: str) -> bool:
    """Whether the last turn ended so, and that is shown."""
    records = await room.settles()
    return [record["reason"] for record in records][-1:] == [reason] and all(
        record["card_released_at"] and (record["answer_posted_at"] or record["reason"] != "completed")
        for record in records
    )


async def is_said_once(room: Room, what: str) -> None:
    """Everything is there, and there once."""
    end = "failed" if what == "note" else "completed"
    await eventually(lambda: has_ended(room, end), timeout=40)
    if what == "note":
        await room.slack.wait_for(lambda _: notes(room, "failed"), timeout=30)
        assert len(notes(room, "failed")) == 1
    else:
        parts = [part["part"] for part in room.posts(ANSWER)]
        assert parts == list(range(1, len(parts) + 1))
        assert len(parts) > 2
    assert len(room.slack.of_type(CARD)) == 1
    await must_be_well(room)


@pytest.mark.parametrize("what", ["card", "answer", "note"])
async def test_after_a_lost_answer_to_a_post_it_is_found_and_said_once(tmp_path: Path, what: str) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        lost = room.slack.lose_reply("chat.postMessage", when=lambda args: shows(what, args))
        script(room, what)
        await ask(room)
        await until_reached(room, "r")
        release(room, "r")
        await room.slack.wait_for(lambda _: lost.hit, timeout=20)
        await is_said_once(room, what)


@pytest.mark.slow
@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "did not arrive"])
@pytest.mark.parametrize("what", ["card", "answer", "note"])
async def test_a_post_in_whose_middle_the_process_died_is_said_once_by_the_next(
    tmp_path: Path, what: str, arrived: bool
) -> None:
    async with Room(tmp_path) as room:
        await room.start_process()
        post = room.slack.hang("chat.postMessage", when=lambda args: shows(what, args), applied=arrived)
        script(room, what)
        await ask(room)
        await until_reached(room, "r")
        if what != "card":
            release(room, "r")
        await room.slack.wait_for(lambda _: post.waiting, timeout=20)
        await room.kill()
        post.release()
        await room.start_process()
        release(room, "r")
        await is_said_once(room, what)
        assert len([call for call in card_posts(room) if call.ok]) == 1

"""One card for each analysis, kept up to date and always released, whatever Slack does meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers.anthropic.blocks import Block, call, text
from tests.servers.anthropic.reply import reply
from tests.stories.looking import until_stored
from tests.stories.room import Room, eventually
from tests.stories.telling import (
    CARD,
    ask,
    card_posts,
    held,
    is_card,
    is_released,
    must_be_well,
    release,
    reply_to,
    story,
    until_reached,
    works,
)


def fast(number: int) -> Block:
    return call("probe__fast", {"text": str(number)})


async def test_a_card_is_posted_once_and_then_only_updated(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        await works(room)
        release(room, "r")
        await room.until_settled("completed")
        assert len(card_posts(room)) == 1
        [card] = room.slack.of_type(CARD)
        assert len(card.versions) >= 2


async def test_many_results_at_once_are_shown_in_few_updates(tmp_path: Path) -> None:
    async with story(tmp_path, card_interval_s=1) as room:
        room.model.script(
            *(reply(*(fast(10 * step + n) for n in range(6))) for step in range(5)), reply(text("so it is"))
        )
        await ask(room)
        await room.until_settled("completed")
        [card] = room.slack.of_type(CARD)
        shown = [v.time for v in card.versions]
        assert len(shown) <= 3 + (shown[-1] - shown[0])
        gaps = [after - before for before, after in pairwise(shown)][:-1]
        assert all(gap > 0.95 for gap in gaps)


async def test_slacks_retry_after_is_honoured_and_the_release_comes_all_the_same(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        await works(room)
        room.slack.rate_limit("chat.update", retry_after=1, times=2)
        release(room, "r")
        await room.until_settled("completed")
        assert room.slack.violations == []


async def test_a_limited_post_of_a_card_is_tried_when_slack_said(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.slack.rate_limit("chat.postMessage", retry_after=1)
        await works(room)
        release(room, "r")
        await room.until_settled("completed")
        assert len([c for c in card_posts(room) if c.ok]) == 1


@pytest.mark.slow
async def test_a_release_goes_before_progress(tmp_path: Path) -> None:
    """Many cards want progress and one its release, after Slack had us wait."""
    async with story(tmp_path, rate_factor=1, slack={"rate_scale": 1}) as room:
        room.model.reply_with(lambda request: reply(held(room, "r")) if not request.calls() else "done")
        threads = [await ask(room) for _ in range(4)]
        await until_reached(room, "r")
        await room.slack.wait_for(lambda slack: len(slack.live_cards()) == 4, timeout=20)
        await reply_to(room, threads[0], "!stop")
        await room.slack.wait_for(
            lambda slack: any(is_released(c.args) for c in slack.calls_of("chat.update")), timeout=5
        )
        release(room, "r")
        await eventually(lambda: all_ended(room, 4), timeout=30)
        assert room.slack.violations == []


async def all_ended(room: Room, count: int) -> bool:
    records = await room.settles()
    return len(records) == count and all(
        record["card_released_at"] and (record["answer_posted_at"] or record["reason"] != "completed")
        for record in records
    )


async def test_a_card_whose_answer_was_lost_is_found_and_not_posted_again(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.slack.lose_reply("chat.postMessage", when=is_card)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        release(room, "r")
        await room.until_settled("completed")
        assert len(card_posts(room)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["limited", "unavailable", "rejected"])
async def test_a_card_whose_answer_was_lost_is_not_posted_again_though_looking_fails_too(
    tmp_path: Path, trouble: str
) -> None:
    async with story(tmp_path) as room:
        room.slack.lose_reply("chat.postMessage", when=is_card)
        if trouble == "limited":
            room.slack.rate_limit("conversations.replies")
        else:
            error = "service_unavailable" if trouble == "unavailable" else "token_revoked"
            room.slack.fail("conversations.replies", error, times=2)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        release(room, "r")
        await room.until_settled("completed")
        assert len(card_posts(room)) == 1


async def test_of_two_cards_that_arrived_the_later_is_deleted(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        lost = room.slack.lose_reply("chat.postMessage", when=is_card)
        room.model.script(reply(held(room, "r")), reply(text("it is the deploy")))
        await ask(room)
        await room.slack.wait_for(lambda _: lost.hit, timeout=20)
        again = dict(card_posts(room)[0].args)
        client = AsyncWebClient(token=room.slack.bot_token, base_url=room.slack.api_url)
        double = await client.chat_postMessage(**again)
        await until_reached(room, "r")
        release(room, "r")
        await room.until_settled("completed")
        [card] = room.slack.of_type(CARD)
        assert card.ts != double["ts"]
        assert room.slack.message("#inc", double["ts"]).deleted


async def test_a_release_whose_answer_was_lost_is_shown_again(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        await works(room)
        room.slack.lose_reply("chat.update", when=is_released)
        release(room, "r")
        await room.until_settled("completed")


async def test_a_card_that_was_deleted_while_the_work_goes_on_is_posted_anew(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(held(room, "r")), reply(held(room, "s")), reply(text("it is the deploy")))
        await ask(room)
        await until_reached(room, "r")
        [card] = await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        await room.slack.delete(card.ts)
        release(room, "r")
        await until_reached(room, "s")
        await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
        release(room, "s")
        await room.until_settled("completed")
        assert len(card_posts(room)) == 2


@pytest.mark.parametrize("trouble", ["deleted", "archived", "locked"])
async def test_a_card_that_slack_takes_no_more_is_given_up_with_a_record(
    tmp_path: Path, trouble: str
) -> None:
    async with Room(tmp_path) as room:
        await room.start()
        ts = await works(room)
        [card] = room.slack.live_cards()
        # Nothing is shown between the trouble and the settle: the release is the first to meet it.
        waiting = room.slack.hang("chat.update", times=None)
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)
        if trouble == "deleted":
            await room.slack.delete(card.ts)
        elif trouble == "archived":
            room.slack.workspace.channel("#inc").archived = True
        else:
            room.slack.lock_thread("#inc", ts)
        waiting.release()
        room.slack.heal("chat.update")
        await asyncio.sleep(1.5)
        tries = len(room.slack.calls_of("chat.update"))
        await asyncio.sleep(1.5)
        assert len(room.slack.calls_of("chat.update")) == tries
        assert not room.model.refused
        if trouble == "deleted":
            await must_be_well(room)


async def settled(room: Room) -> bool:
    return bool(await room.settles())


async def test_where_rich_blocks_are_refused_a_plainer_card_is_shown(tmp_path: Path) -> None:
    def is_rich(args: dict[str, object]) -> bool:
        return "task_card" in str(args.get("blocks")) or "'plan'" in str(args.get("blocks"))

    async with story(tmp_path) as room:
        for method in ("chat.postMessage", "chat.update"):
            room.slack.fail(method, "invalid_blocks", times=None, when=is_rich)
        await works(room)
        release(room, "r")
        await room.until_settled("completed")
        refused = [c for c in room.slack.calls if c.error == "invalid_blocks"]
        assert 1 <= len(refused) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("refuse", [True, False], ids=["refused", "503"])
async def test_slack_out_of_reach_in_the_middle_delays_and_loses_nothing(
    tmp_path: Path, refuse: bool
) -> None:
    async with story(tmp_path, slack={"retry_delays": (0.5, 1.0, 2.0, 4.0, 8.0)}) as room:
        ts = await works(room)
        await room.slack.down(refuse=refuse)
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)
        await asyncio.sleep(1.5)
        await room.slack.up()
        await room.until_settled("completed")
        room.model.script(reply(text("still")))
        if refuse:
            await room.slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=30)
        await room.slack.say("Ana", "#inc", "and now?", thread=ts)
        await until_stored(room, ts, 2)
        await room.until_settled("completed", "completed")


async def test_a_token_that_is_refused_for_a_while_costs_neither_the_card_nor_the_answer(
    tmp_path: Path,
) -> None:
    async with story(tmp_path) as room:
        await works(room)
        room.slack.revoke("token_revoked")
        release(room, "r")
        await eventually(lambda: settled(room), timeout=20)
        await asyncio.sleep(1)
        assert len([c for c in room.slack.calls if c.error == "token_revoked"]) < 20
        room.slack.restore()
        await room.until_settled("completed")


@pytest.mark.slow
async def test_a_message_that_came_while_the_network_was_gone_is_read(tmp_path: Path) -> None:
    async with story(tmp_path, slack={"retry_delays": (0.3, 1.0, 2.0, 4.0, 8.0)}) as room:
        ts = await works(room)
        room.slack.cut_sockets()
        await room.slack.say("Ben", "#inc", "look at eu-7", thread=ts)
        await until_stored(room, ts, 2)
        release(room, "r")
        await room.until_settled("steered", "completed")

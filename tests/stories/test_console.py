"""The promise on the console, through a real browser: steering, stopping, dying, reloading, on a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import Reply, reply
from tests.stories.browser import Page, browser
from tests.stories.console_room import ConsoleRoom

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.xdist_group("browser")]

FOUND = reply(text("**The deploy at 14:05** removed an index [c1].\n\n- p99 went from 0.2 s to 4.2 s\n"))


@asynccontextmanager
async def story(folder: Path, *, phone: bool = False) -> AsyncIterator[tuple[ConsoleRoom, Page]]:
    """A console, and a browser in front of it that has nothing to complain of; well once it is told."""
    async with ConsoleRoom(folder) as room, browser(folder / "browser") as page:
        await room.start()
        await page.window(390 if phone else 1360, 844, dark=phone)
        await page.go(room.url)
        yield room, page
        assert [one for one in page.complaints if "/events" not in one] == []
        await room.must_be_well()


def looks(room: ConsoleRoom, *names: str) -> Reply:
    """A batch of reading calls that wait until they are released."""
    return reply(text("I look."), *(room.held(name) for name in names))


async def begin(room: ConsoleRoom, page: Page, *names: str) -> None:
    """Press the one button, and wait until the first batch runs."""
    await page.click(".go")
    await room.until_reached(*names)
    await page.until("document.querySelectorAll('.card.live .calls li').length > 0")


async def count(page: Page, selector: str) -> int:
    """How many such elements there are."""
    return int(await page.look(f"document.querySelectorAll('{selector}').length"))


async def test_one_click_starts_an_analysis_whose_card_moves_by_itself(tmp_path: Path) -> None:
    async with story(tmp_path) as (room, page):
        room.model.script(looks(room, "p99"), looks(room, "deploys"), FOUND)
        await page.until_says("An incident channel with an investigator in it")
        await begin(room, page, "p99")
        assert await count(page, ".card .stop") == 1
        room.release("p99")
        await room.until_reached("deploys")
        await page.until("document.querySelectorAll('.card.live .calls li').length === 2")
        assert await count(page, ".card") == 1
        room.release("deploys")
        await page.until("document.querySelector('.watchkeeper_answer strong')")
        await page.until_says("Answered. This one counts.")
        assert await count(page, ".card .stop, .card .spin") == 0
        await page.until("document.querySelector('.receipt.white_check_mark')")
        await room.until_settled("completed")


async def test_a_reply_in_the_middle_of_a_batch_steers_and_a_guest_is_refused(tmp_path: Path) -> None:
    async with story(tmp_path) as (room, page):
        room.model.script(looks(room, "p99", "errors"), FOUND)
        await begin(room, page, "p99", "errors")
        await page.write("! look at the 14:05 deploy first")
        await page.until("document.querySelector('#preview .effect.steer')")
        await page.press("Enter")
        await page.until_says("Ana wrote:")
        await page.until("document.getElementById('words').value === ''")
        await page.click(".try.guest")
        await page.until_says("Please look at my laptop instead.")
        room.release("p99", "errors")
        await page.until("document.querySelector('.watchkeeper_answer')")
        await room.until_settled("steered", "completed")
        await page.until_says("cut by Ana")
        await page.until("document.querySelector('#records .effect.deny')")
        assert "Only you can see this" not in await page.text()
        await page.go(str(await page.look("location.href")).replace("as=ana", "as=gus"))
        await page.until_says("Only you can see this")
        await page.write("let me in")
        await page.until("document.querySelector('#preview .effect.deny')")


async def test_stop_ends_the_work_and_its_button(tmp_path: Path) -> None:
    async with story(tmp_path) as (room, page):
        room.model.script(looks(room, "p99"))
        await begin(room, page, "p99")
        await page.click(".card .stop")
        await page.until_says("Stopping")
        room.release("p99")
        await room.until_settled("stopped")
        await page.until_says("Stopped by Ana")
        assert await count(page, ".card .stop") == 0


async def test_a_killed_worker_comes_back_settles_what_it_lost_and_finishes(tmp_path: Path) -> None:
    async with story(tmp_path) as (room, page):
        room.model.script(
            reply(text("I look."), call("shop__fast", {"text": "rate"}), room.held("p99")), FOUND
        )
        await begin(room, page, "p99")
        await page.write("this draft outlives the worker")
        await page.click(".try.kill")
        await page.until("!document.getElementById('away').hidden")
        room.release("p99")
        await page.until("document.getElementById('away').hidden")
        await room.until_settled("stale", "completed")
        await page.until("document.querySelector('.reason.stale')")
        await page.until("document.querySelector('.reason.completed')")
        await page.until("document.querySelector('.watchkeeper_answer')")
        assert await page.look("document.getElementById('words').value") == "this draft outlives the worker"
        assert await count(page, ".card") == 1
        assert "SIGKILL" in room.log()


async def test_a_restart_cuts_the_turn_at_a_safe_point_and_a_reload_loses_nothing(tmp_path: Path) -> None:
    async with story(tmp_path) as (room, page):
        room.model.script(looks(room, "p99"), looks(room, "deploys"), FOUND)
        await begin(room, page, "p99")
        await page.click(".try.restart")
        room.release("p99")
        await room.until_reached("deploys")
        await page.reload()
        await page.until("document.querySelectorAll('.card.live .calls li').length === 2")
        room.release("deploys")
        await room.until_settled("drained", "completed")
        await page.until("document.querySelector('.watchkeeper_answer')")
        assert await count(page, "#messages > .message") == 4
        await room.must_be_well()
        assert await room.stop() == 0


async def test_it_fits_a_phone_and_can_be_used_by_keyboard_in_the_dark(tmp_path: Path) -> None:
    async with story(tmp_path, phone=True) as (room, page):
        room.model.script(looks(room, "p99"), FOUND)
        await page.look("document.querySelector('.go').focus()")
        await page.press("Enter")
        await room.until_reached("p99")
        await page.until("document.querySelector('.card.live .calls')")
        assert await page.look("document.documentElement.scrollWidth <= innerWidth")
        await page.look("document.querySelector('.card .stop').focus()")
        await page.press("Enter")
        await page.until_says("Stopping")
        room.release("p99")
        await room.until_settled("stopped")
        assert await page.look("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 27)"

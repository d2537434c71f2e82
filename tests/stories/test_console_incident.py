"""Five minutes to an incident, as somebody has them who just heard of this: no key, no configuration.

The pictures in docs/pictures are of these stories; `WATCHKEEPER_PICTURES=1` renews them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stories.browser import Page, browser
from tests.stories.console_room import ConsoleRoom
from tests.stories.room import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("browser")]

TOO_WIDE = """[...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > 391 && !one.closest('pre, table, .cast, #threads'))
    .map((one) => one.outerHTML.slice(0, 120))"""


async def picture(page: Page, name: str) -> None:
    """Keep a picture for the docs, where that was asked for."""
    if os.environ.get("WATCHKEEPER_PICTURES"):
        await page.picture(ROOT / "docs" / "pictures" / f"{name}.png")


async def begin(page: Page, fault: str) -> None:
    """Pick a fault and press the one button."""
    await page.until_says("Start the incident")
    await picture(page, "console-start")
    await page.look(f"document.querySelector('select').value = '{fault}'")
    await page.click(".go")
    await page.until("document.querySelectorAll('.card.live .calls li').length > 1")


async def test_a_steered_and_killed_rehearsal_still_finds_the_bad_deploy(tmp_path: Path) -> None:
    async with ConsoleRoom(tmp_path, bundled=True) as room, browser(tmp_path / "browser") as page:
        await room.start()
        await page.window(1360, 860)
        await page.go(room.url)
        await begin(page, "bad_deploy")
        await page.write("! what was deployed in the last hour?")
        await page.until("document.querySelector('#preview .effect.steer')")
        await picture(page, "console-steering")
        await page.press("Enter")
        await page.until("document.querySelector('.card.shrunk')", timeout=60)
        await page.until("document.querySelector('.card.live .calls li')", timeout=60)
        await page.click(".try.kill")
        await page.until("!document.getElementById('away').hidden")
        await picture(page, "console-killed")
        await page.until("document.querySelector('.reason.stale')", timeout=60)
        await page.until("document.querySelector('.watchkeeper_answer')", timeout=120)
        await page.until("document.querySelector('.reason.completed')")
        reasons = [record["reason"] for record in await room.settles()]
        assert reasons[0] == "steered"
        assert "stale" in reasons
        assert reasons[-1] == "completed"
        answer = str(await page.look("document.querySelector('.watchkeeper_answer').innerText"))
        assert "bad deploy" in answer.lower()
        await page.click(".try.reveal")
        await page.until_says("It was: bad deploy")
        await page.until("document.querySelector('.receipt.white_check_mark')")
        await picture(page, "console-answer")
        await page.window(390, 844, dark=True)
        await page.reload()
        await page.until("document.querySelector('.watchkeeper_answer')")
        assert await page.look("[innerWidth, visualViewport.scale]") == [390, 1]
        await picture(page, "console-phone")
        assert await page.look(TOO_WIDE) == []
        assert [one for one in page.complaints if "/events" not in one] == []
        await room.must_be_well()


async def test_stop_and_a_guest_in_the_bundled_incident(tmp_path: Path) -> None:
    async with ConsoleRoom(tmp_path, bundled=True) as room, browser(tmp_path / "browser") as page:
        await room.start()
        await page.window(1360, 860)
        await page.go(room.url)
        await begin(page, "exhausted_pool")
        await page.click(".try.guest")
        await page.until("document.querySelector('#records .effect.deny')")
        await page.click(".card.live .stop")
        await page.until("document.querySelector('.reason.stopped')", timeout=60)
        await page.go(str(await page.look("location.href")).replace("as=ana", "as=gus"))
        await page.until_says("Only you can see this")
        await page.write("and now?")
        await page.until("document.querySelector('#preview .effect.deny')")
        await picture(page, "console-guest")
        assert [one for one in page.complaints if "/events" not in one] == []
        await room.must_be_well()

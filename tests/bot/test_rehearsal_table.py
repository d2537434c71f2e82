"""Six faults × three ways of being spoken to: the rehearsal concludes rightly, whatever the hint."""

import pytest

from bot.incident.answers import TRUTHS
from docs.rehearse import HINTS, PAGE, told


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("fault", TRUTHS)
async def test_the_rehearsal_finds_what_is_wrong(fault: str, hint: str) -> None:
    row = await told(fault, hint)
    assert row.is_right, row.answer
    if hint == "a wrong hint":
        assert any(said in row.answer for said in ("speaks against it", "is not the origin"))


def test_the_page_has_a_right_conclusion_for_each() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(tuple(f"| `{fault}`" for fault in TRUTHS))]
    assert [row.split(" | ")[3] for row in rows] == ["yes"] * len(TRUTHS) * len(HINTS)

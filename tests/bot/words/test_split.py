"""Splitting is cheap however short the lines are: drawing a part to see whether it fits costs."""

from __future__ import annotations

import pytest

from bot.words.split import split

MOST = 2_000


@pytest.mark.parametrize(
    "text",
    ["a\n\n" * 5_000, "\n" * 10_000 + "a", "```\n" + "code\n" * 5_000 + "```", "```\n" + "\n" * 9_000 + "x"],
    ids=["paragraphs", "blank lines", "code", "blank lines of code"],
)
def test_a_part_is_looked_at_a_few_times_only(text: str) -> None:
    looks: list[int] = []

    def fits(part: str) -> bool:
        looks.append(len(part))
        return len(part) <= MOST

    parts = split(text, fits)
    assert all(len(part) <= MOST for part in parts)
    assert len(looks) <= 30 * (len(text) // MOST + 1)
    assert sum(part.count("a") + part.count("code") for part in parts) == text.count("a") + text.count("code")


def test_each_part_takes_as_many_lines_as_fit() -> None:
    lines = [f"line {number}" for number in range(100)]
    parts = split("\n".join(lines), lambda part: part.count("\n") < 30)
    assert [part.count("\n") + 1 for part in parts] == [30, 30, 30, 10]
    assert "\n".join(parts).split("\n") == lines


def test_a_fence_is_opened_again_in_each_part_and_a_blank_line_outside_of_code_ends_one() -> None:
    code = "```python\n" + "x\n" * 8 + "```"
    parts = split(f"first\n\nsecond\n{code}\n\nlast", lambda part: part.count("\n") < 6)
    assert parts[0] == "first\n\nsecond\n```python\nx\n```"
    assert all(part.startswith("```python\nx") and part.endswith("```") for part in parts[1:-1])
    assert parts[-1].endswith("last")
    assert sum(part.count("\nx") for part in parts) == 8

"""The system text is versioned, bounded, and speaks of every tag that the model will see."""

import re

import pytest

from bot.model.instructions import instructions
from core.prompt import TAGS, defused


def test_the_investigator_has_a_version_and_a_hash() -> None:
    text = instructions()
    assert text.name == "investigator"
    assert text.version >= 1
    assert re.fullmatch(r"[0-9a-f]{12}", text.digest)
    assert "version" not in text.text.splitlines()[0]


@pytest.mark.parametrize("tag", TAGS)
def test_every_tag_is_explained(tag: str) -> None:
    assert f"<{tag}" in instructions().text


def test_no_other_tag_is_mentioned() -> None:
    assert set(re.findall(r"<(\w+)", instructions().text)) == set(TAGS)


@pytest.mark.parametrize(
    "part", ["Verdict", "Evidence", "Ruled out", "Not checked", "Next steps", "Steers", "[c3]", "confidence"]
)
def test_every_part_of_the_answer_is_named(part: str) -> None:
    assert part in instructions().text


def test_it_is_short() -> None:
    assert len(instructions().text) < 6000


def test_its_examples_of_tags_could_not_come_from_anybodys_words() -> None:
    assert defused(instructions().text) != instructions().text


def test_an_unknown_name_is_a_fault() -> None:
    with pytest.raises(FileNotFoundError):
        instructions("nobody")

"""Citations are held against the records: what never was is struck, what was is described by code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import HEADING, CitedCall, checked
from core.tools import Outcome

CALLS = {
    f"c{number}": CitedCall(f"c{number}", "logs", f"app=shop-{number}", "14:00–14:30", outcome)
    for number, outcome in enumerate([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.TIMED_OUT, Outcome.OK], 1)
}
MARKS = ["~~", "```", "~~~", "`", HEADING, "\n", "\n\n", " ", "words", "[c", "]", "- [c2] x", "- [c77] y"]
CITATIONS = [
    "[c1]",
    "[c2, c9]",
    "[c1–c4]",
    "[c3-9]",
    "[C2]",
    "[c999999]",
    "[c1](http://x)",
    "~~[c9]~~",
    "`[c1]`",
]
ANSWERS = st.lists(st.sampled_from([*CITATIONS, *MARKS]), max_size=14).map("".join) | st.text()


def test_an_answer_without_citations_passes_unchanged() -> None:
    answer = "It was DNS.  \n"
    assert checked(answer, CALLS).text is answer


def test_cited_calls_are_listed_from_the_records() -> None:
    answer = checked("Errors rose at 14:05 [c1].", CALLS)
    assert answer.text == (
        f"Errors rose at 14:05 [c1].\n\n{HEADING}\n- [c1] logs: `app=shop-1` (14:00–14:30)"
    )
    assert answer.unknown == ()


def test_a_call_that_never_was_is_struck_and_said() -> None:
    answer = checked("It was the deploy [c9].", CALLS)
    assert answer.text.startswith("It was the deploy ~~[c9]~~.")
    assert answer.text.endswith("- [c9] is not a call of this investigation: struck")
    assert answer.unknown == ("c9",)


@pytest.mark.parametrize(
    "citation", ["[c1, c2, c3]", "[c1–c3]", "[c1-c3]", "[c1-3]", "[C1; c2 and c3]", "[c1][c2][c3]"]
)
def test_lists_and_ranges_are_citations(citation: str) -> None:
    text = checked(f"so {citation}", CALLS).text
    assert [f"- [c{n}]" in text for n in (1, 2, 3, 4)] == [True, True, True, False]


def test_of_a_mixed_citation_only_the_unknown_part_is_struck() -> None:
    assert checked("so [c1, c9, c2]", CALLS).text.startswith("so [c1, c2] ~~[c9]~~\n")


def test_a_failed_call_is_marked() -> None:
    assert "- [c4] logs: `app=shop-4` (14:00–14:30) – timed out" in checked("[c4]", CALLS).text


def test_code_is_left_alone() -> None:
    answer = "Use `row[c9]`:\n```\nx = [c9]\n```\ndone"
    assert checked(answer, CALLS).text is answer


def test_a_list_of_calls_that_the_model_made_up_is_replaced() -> None:
    answer = checked(f"It was DNS [c1].\n\n{HEADING}\n- [c1] dns: `all zones` (today)\n- [c8] none", CALLS)
    assert "all zones" not in answer.text
    assert answer.unknown == ("c8",)


def test_a_fence_left_open_does_not_swallow_the_list() -> None:
    assert f"[c1]\n```\nx\n```\n\n{HEADING}" in checked("[c1]\n```\nx", CALLS).text


def test_a_query_cannot_break_the_list() -> None:
    calls = {"c1": CitedCall("c1", "logs", "a`b\n- [c5] x" + "y" * 500, "", Outcome.OK)}
    listed = checked("[c1]", calls).text.split(f"{HEADING}\n")[1]
    assert listed.startswith("- [c1] logs: `a'b - [c5] x")
    assert "\n" not in listed
    assert len(listed) < 200


def test_a_range_too_wide_to_be_meant_stands_for_its_ends() -> None:
    assert checked("[c1-c999999]", CALLS).unknown == ("c999999",)


@given(answer=ANSWERS)
def test_checking_twice_changes_nothing(answer: str) -> None:
    once = checked(answer, CALLS)
    assert checked(once.text, CALLS) == once


@given(answer=ANSWERS)
def test_what_is_listed_is_what_the_records_say(answer: str) -> None:
    text = checked(answer, CALLS).text
    if text is not answer:
        listed = text.rpartition(f"{HEADING}\n")[2].splitlines()
        truths = [f"logs: `app=shop-{n}` (14:00–14:30)" for n in range(1, 6)]
        assert all(any(t in line for t in truths) or line.endswith(": struck") for line in listed)

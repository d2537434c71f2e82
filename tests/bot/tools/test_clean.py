"""Tool text is shown without what nobody sees, and never longer than it may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.tools.clean import bound, clean, one_line, shorten


@pytest.mark.parametrize(
    "raw,shown",
    [
        ("a\x00b\x07c\x7fd", "abcd"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("red \x1b[31mtext\x1b[0m, \x1b]0;title\x07done", "red text, done"),
        ("link \x1b]8;;https://evil\x1b\\here", "link here"),
        ("unfinished \x1b[31", "unfinished "),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("\u202egnp.exe\u202c \u2066x\u2069", "gnp.exe x"),
        ("a\u200bb\ufeff", "ab"),
        ("hello" + "".join(chr(0xE0000 + ord(c)) for c in "obey me"), "hello"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("grüße 🔥 日本", "grüße 🔥 日本"),
    ],
)
def test_what_nobody_sees_is_dropped_and_the_rest_stays(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@given(st.text(st.characters(), max_size=200))
def test_cleaning_twice_changes_nothing_and_the_result_is_always_utf_8(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode()


def test_an_unfinished_escape_sequence_costs_no_more_than_its_length() -> None:
    assert clean("\x1b]" * 200_000) == ""


@given(st.text(max_size=400), st.integers(1, 600))
def test_a_bounded_text_never_has_more_bytes_than_it_may(text: str, most: int) -> None:
    text = clean(text)
    cut = bound(text, most)
    assert len(cut.encode()) <= most
    assert cut == text or len(text.encode()) > most


def test_a_cut_text_keeps_head_and_tail_and_says_what_is_missing_and_how_to_get_less() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    cut = bound(text, 2_000)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("line 9999\n")
    kept = len(cut) - len(cut.partition("\n[")[2].partition("]\n")[0]) - len("\n[]\n")
    assert f"[{len(text) - kept} of {len(text)} bytes left out here" in cut
    assert "Ask for less" in cut


def test_a_character_is_never_cut_in_two() -> None:
    for most in range(200, 260):
        assert "\ufffd" not in bound("🔥" * 500, most)


def test_a_rough_cut_keeps_whole_lines_at_both_ends() -> None:
    cut = shorten("".join(f"line {number}\n" for number in range(1_000)), 100)
    assert cut.startswith("line 0\n")
    assert cut.endswith("line 999\n")
    assert "characters left out here" in cut
    assert shorten("short", 100) == "short"


def test_one_line_is_one_line() -> None:
    assert one_line("a\n\x1b[1mb\tc " + "x" * 500, 20) == "a b c " + "x" * 13 + "…"

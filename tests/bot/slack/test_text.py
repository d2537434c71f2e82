"""Model Markdown as Slack text, and its parts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.slack.split import MOST_BYTES, MOST_CHARACTERS, fits, split
from bot.slack.text import cut, plain, said, to_mrkdwn

HOSTS = frozenset({"runbooks.corp"})
UNSEEN = "\u2060"


@pytest.mark.parametrize(
    "markdown, mrkdwn",
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("<!channel> <!here|x> <!subteam^S1>", "&lt;!channel&gt; &lt;!here|x&gt; &lt;!subteam^S1&gt;"),
        ("<@U123ABC> <#C1>", "&lt;@U123ABC&gt; &lt;#C1&gt;"),
        ("@channel @Here, me@heretic.org", f"@{UNSEEN}channel @{UNSEEN}Here, me@heretic.org"),
        ("``a ` b`` and ```c``` and `` d", "`a ˋ b` and `c` and ˋˋ d"),
        ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
        ("2 * 3 * 4 and snake_case and __init__", "2 * 3 * 4 and snake_case and __init__"),
        ("## Root **cause** ##", "*Root cause*"),
        ("- one\n  * two\n+ [ ] three\n- [x] four\n1. five", "• one\n  • two\n☐ three\n☑ four\n1. five"),
        ("---", "———"),
        ("`a < b` and `**x**`", "`a &lt; b` and `**x**`"),
        ("[label](https://evil.test/?q=1&r=2)", "label (`https://evil.test/?q=1&amp;r=2`)"),
        ("**[label](https://evil.test)**", "*label (`https://evil.test`)*"),
        ("![graph](https://evil.test/p.png)", "[image: graph] `https://evil.test/p.png`"),
        ("[![a](https://evil.test/p.png)](https://evil.test)", "[[image: a] `https://evil.test/p.png`](`https://evil.test`)"),
        ("see https://evil.test/x.", "see `https://evil.test/x`."),
        ("<https://evil.test|click me>", "`https://evil.test`|click me&gt;"),
        ("[run it](https://runbooks.corp/a_b)", "<https://runbooks.corp/a_b|run it>"),
        ("https://runbooks.corp/a?b=1&c=2", "<https://runbooks.corp/a?b=1&amp;c=2>"),
        ("https://runbooks.corp@evil.test/", "`https://runbooks.corp@evil.test/`"),
        ("https://runbooks.corp.evil.test/", "`https://runbooks.corp.evil.test/`"),
        ("http://runbooks.corp/", "`http://runbooks.corp/`"),
        ("[x](javascript:alert)", "x (`javascript:alert`)"),
        ("mailto:a@b.c", "`mailto:a@b.c`"),
        ("```python\nif a < b: # **no**\n```\nend", "```\nif a &lt; b: # **no**\n```\nend"),
        ("~~~\ncode\n", "```\ncode\n\n```"),
        ("| a | b |\n|---|:-:|\n| 10 `x` | **2** |", "```\na     b\n────  ─\n10 x  2\n```"),
        ("| just a bar", "| just a bar"),
        ("> quoted", "&gt; quoted"),
        ("\ue0000\ue001 \x00\ud800", "0 "),
    ],
)  # fmt: skip
def test_markdown_becomes_text_that_does_nothing(markdown: str, mrkdwn: str) -> None:
    assert to_mrkdwn(markdown, HOSTS) == mrkdwn


MARKS = st.sampled_from(
    [
        "<!channel>",
        "<@U123>",
        "<#C1>",
        "<!subteam^S1>",
        "@here",
        "@everyone",
        "`",
        "``",
        "```",
        "~~~",
        "```py",
        "**",
        "*",
        "_",
        "~",
        "[",
        "](",
        ")",
        "![",
        "<",
        ">",
        "&",
        "&lt;",
        "|",
        "-",
        "#",
        "\\",
        "\n",
        "\n\n",
        "https://evil.test",
        "https://runbooks.corp/x",
        " ",
        "\ue000",
        "\ue001",
        "\ue0001\ue001",
        "‹",
    ]
)
MARKDOWN = st.lists(MARKS | st.text(max_size=12), max_size=40).map("".join)
PING = re.compile(r"<[!@#]|@(?:channel|here|everyone)\b", re.IGNORECASE)


@settings(deadline=None)
@given(MARKDOWN)
def test_nothing_that_a_model_can_write_pings_or_links(markdown: str) -> None:
    for drawn in (to_mrkdwn(markdown, HOSTS), plain(markdown, 500), said(markdown, 500)):
        assert not PING.search(drawn)
        for address in re.findall(r"<([^>]*)>?", drawn):
            assert address.startswith("https://runbooks.corp/")
        assert not re.search(r"&(?!amp;|lt;|gt;)", drawn) or drawn == plain(markdown, 500)


@settings(deadline=None)
@given(MARKDOWN)
def test_a_url_of_another_host_stands_only_in_code(markdown: str) -> None:
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", to_mrkdwn(markdown, HOSTS), flags=re.DOTALL)
    assert not re.search(r"\bhttps://evil\.test", outside)


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 50), st.integers(1, 50))
def test_a_cut_ends_in_no_half_of_an_escape(text: str, most: int, most_bytes: int) -> None:
    short = cut(said(text, 300), most, most_bytes)
    assert not re.search(r"&(?!amp;|lt;|gt;)", short)


LONG = st.lists(st.lists(MARKS | st.text(max_size=60), max_size=12).map(" ".join), max_size=60).map("\n".join)
WORD = st.sampled_from(["alpha", "be&ta", "gam<ma", "δέλτα", "日本語", "🙂"])
LINE = st.lists(WORD, min_size=1, max_size=60).map(" ".join)
WORDS = st.lists(LINE, min_size=1, max_size=60).map("\n".join)


@settings(deadline=None)
@given(LONG)
def test_every_part_fits_one_message(markdown: str) -> None:
    for part in split(markdown, HOSTS):
        drawn = to_mrkdwn(part, HOSTS)
        assert part.strip()
        assert len(drawn) <= MOST_CHARACTERS
        assert len(drawn.encode()) <= MOST_BYTES
        assert fits(part, HOSTS)


@settings(deadline=None)
@given(MARKDOWN.map(lambda markdown: markdown * 20))
def test_a_quick_guess_never_lets_a_part_grow_too_large(markdown: str) -> None:
    drawn = to_mrkdwn(markdown, HOSTS)
    is_small = len(drawn) <= MOST_CHARACTERS and len(drawn.encode()) <= MOST_BYTES
    assert is_small or not fits(markdown, HOSTS)


@settings(deadline=None)
@given(WORDS)
def test_the_parts_together_have_all_words_in_order(text: str) -> None:
    assert "\n".join(split(text)).split() == text.split()


@settings(deadline=None)
@given(WORDS)
def test_code_that_is_split_is_closed_and_opened_again_with_its_language(text: str) -> None:
    parts = split(f"```sql\n{text}\n```")
    assert all(part.startswith("```sql\n") and part.endswith("\n```") for part in parts)
    inner = [part.removeprefix("```sql\n").removesuffix("```") for part in parts]
    assert "\n".join(inner).split() == text.split()


def test_a_text_is_split_between_paragraphs_where_it_can_be() -> None:
    paragraph = "word " * 80
    parts = split("\n\n".join([paragraph] * 12))
    assert [part.count("\n\n") for part in parts] == [5, 5]


def test_one_long_word_is_broken_but_loses_nothing() -> None:
    parts = split("x" * 10_000)
    assert "".join(parts).replace("\n", "") == "x" * 10_000


def test_a_short_text_is_one_part_and_nothing_is_none() -> None:
    assert split("hello") == ["hello"]
    assert split(" \n ") == []

"""Secrets are taken out of whole texts and of texts in pieces, known ones in every encoding."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.redaction import Redactor, StreamRedactor

SECRET = "correct horse/battery+staple=42"
MULTILINE = "-----BEGIN THING-----\nfirstline0123\nsecondline456\n-----END THING-----"
REDACTOR = Redactor([SECRET, MULTILINE, "", "short"])
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
PEM = (
    "-----BEGIN RSA "
    + "PRIVATE KEY-----\nMIIBOgIBAAJBAKj34Gkx\nFhD9+/abc==\n-----END RSA "
    + "PRIVATE KEY-----"
)

WORDS = [
    "password",
    "token",
    "=",
    ":",
    '"',
    "'",
    "\\",
    "\\n",
    "://",
    "@",
    "a",
    ".",
    "sk-",
    "Bearer",
    "Authorization",
    "eyJhbGciOiJI",
    "[redacted:",
    "]",
    "x1",
    "secret",
    "key",
    ";",
    "&",
    "basic",
    "[redacted:known_secret]",
    "MIIBOgIBAAJBAKj34",
    "abcdefgh12",
]
LINES = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", "\r\n", " ", "\u2028"]
PIECES = st.sampled_from([KEY, PEM, SECRET, *WORDS, *LINES])
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=25).map("".join)


def in_pieces(text: str, cuts: list[int]) -> str:
    """The text as a stream gives it, cut at those places."""
    stream = StreamRedactor(REDACTOR)
    ends = [*sorted(cut for cut in cuts if cut < len(text)), len(text)]
    starts = [0, *ends[:-1]]
    return (
        "".join(stream.feed(text[start:end]) for start, end in zip(starts, ends, strict=True))
        + stream.flush()
    )


@given(TEXTS)
@example("://[redacted:known_secret]@host")
@example("-----BEGIN PRIVATE KEY-----" * 3)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@given(TEXTS, st.lists(st.integers(0, 300), max_size=8))
def test_text_in_pieces_is_redacted_as_the_whole_would_be(text: str, cuts: list[int]) -> None:
    assert in_pieces(text, cuts) == REDACTOR.redact(text)


@pytest.mark.parametrize("secret", [KEY, PEM, SECRET, "password=hunter2", "postgres://a:b@c/d"])
def test_a_secret_cut_at_any_place_is_caught(secret: str) -> None:
    text = f"before {secret} between\nand {secret}\nafter"
    whole = REDACTOR.redact(text)
    assert secret not in whole
    for cut in range(len(text)):
        assert in_pieces(text, [cut]) == whole
    assert in_pieces(text, list(range(len(text)))) == whole


def test_what_was_given_out_is_never_taken_back() -> None:
    stream = StreamRedactor(REDACTOR)
    assert stream.feed("one\ntwo AKIA") == "one\n"
    assert stream.feed("IOSFODNN7EXAMPLE") == ""
    assert stream.feed(" three\nfour") == "two [redacted:aws_key] three\n"
    assert stream.flush() == "four"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"a:" + SECRET.encode() + b"\n").decode(),
        "firstline0123",
        "secondline456",
    ],
)
def test_a_known_secret_is_found_in_every_usual_encoding(form: str) -> None:
    shown = REDACTOR.redact(f"x={form}; rest")
    assert "[redacted:" in shown
    assert shown.endswith("; rest")
    for part in (SECRET, quote_plus(SECRET), "firstline", "secondline", form[4:-4]):
        assert part not in shown


def test_a_short_known_value_and_a_word_of_our_marks_are_no_secrets() -> None:
    redactor = Redactor(["short", "redacted", "password"])
    assert redactor.redact("a short text was redacted") == "a short text was redacted"


def test_a_private_key_goes_whole_and_leaves_its_surroundings() -> None:
    assert REDACTOR.redact(f"a\n{PEM}\nb") == "a\n[redacted:private_key]\nb"
    assert REDACTOR.redact(f"KEY='{PEM}' rest") == "KEY='[redacted:private_key]' rest"
    indented = PEM.replace("\n", "\n    ")
    assert (
        REDACTOR.redact(f"key: |\n    {indented}\nnext: 1") == "key: |\n    [redacted:private_key]\nnext: 1"
    )
    assert REDACTOR.redact(json.dumps({"key": PEM})) == '{"key": "[redacted:private_key]"}'


def test_a_private_key_without_an_end_takes_only_its_own_lines() -> None:
    broken = PEM.partition("\n-----END")[0]
    assert REDACTOR.redact(f"{broken}\nthe next log line") == "[redacted:private_key]\nthe next log line"

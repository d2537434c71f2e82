"""Whatever a text holds, the body of a request can be written."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.clean import clean, clean_text

ANY_TEXT = st.text(st.characters(codec=None)) | st.sampled_from(["\ud83d\ude00", "\ud83d", "a\0b"])


@given(value=st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)))
@settings(max_examples=40, deadline=None)
def test_every_value_can_be_encoded_and_cleaning_twice_changes_nothing(value: object) -> None:
    cleaned = clean(value)
    assert b"\\u0000" not in json.dumps(cleaned, ensure_ascii=False).encode()
    assert clean(cleaned) == cleaned


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_good_text_stays(text: str) -> None:
    assert clean_text(text) == text


def test_halves_are_joined_or_replaced() -> None:
    assert clean_text("\ud83d\ude00 \ud83d \ude00") == "😀 \ufffd \ufffd"

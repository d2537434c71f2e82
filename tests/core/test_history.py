"""A message survives its stored form whole, whatever stands in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history import (
    Block,
    Call,
    Message,
    Opaque,
    Result,
    Role,
    Text,
    assistant,
    block_from_json,
    blocks_to_json,
    message_from_json,
    user,
)

words = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, values, max_size=3)
blocks = st.one_of(
    st.builds(Text, words),
    st.builds(Call, words, words, objects),
    st.builds(Result, words, words, st.booleans()),
    st.builds(Opaque, words, objects),
)


@given(role=st.sampled_from(Role), content=st.lists(blocks, max_size=5).map(tuple))
def test_a_message_comes_back_from_the_database_as_it_went_in(role: Role, content: tuple[Block, ...]) -> None:
    stored = json.loads(json.dumps(blocks_to_json(content)))
    assert message_from_json(role.value, stored) == Message(role, content)


def test_a_block_of_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown block type 'picture'"):
        block_from_json({"type": "picture"})


def test_a_messages_calls_keep_the_models_order() -> None:
    first, second = Call("b", "logs", {}), Call("a", "metrics", {})
    assert assistant(Text("I look."), first, Text(" "), second).calls == (first, second)


def test_a_messages_text_is_its_words_as_they_were_written() -> None:
    assert assistant(Text("one"), Call("a", "logs", {}), Text(" two")).text == "one two"
    assert not user(Result("a", "found")).text

"""Call ids become legal and unique, and change only where they must."""

from hypothesis import given
from hypothesis import strategies as st

from core.call_ids import LONGEST, is_legal, legalised
from core.history import Call, Message, Text, assistant

IDS = (
    st.sampled_from(["", "a", "a-2", "b", "call", "call-2", "x:1", "x_1", "é", "a" * 64, "a" * 65])
    | st.text()
)
TAKEN = st.frozensets(IDS, max_size=6)


def calling(*ids: str) -> Message:
    return assistant(Text("on it"), *(Call(call_id, "logs", {}) for call_id in ids))


def ids_of(message: Message) -> list[str]:
    return [call.id for call in message.calls]


def test_legal_ids_stay_and_the_message_is_the_same_object() -> None:
    message = calling("toolu_1", "toolu_2")
    assert legalised(message, frozenset({"toolu_0"})) == (message, {})
    assert legalised(message, frozenset())[0] is message


def test_an_empty_id_gets_a_name() -> None:
    assert ids_of(legalised(calling("", ""), frozenset())[0]) == ["call", "call-2"]


def test_of_two_equal_ids_the_first_stays() -> None:
    message, changed = legalised(calling("a", "a"), frozenset())
    assert (ids_of(message), changed) == (["a", "a-2"], {})


def test_an_id_that_is_taken_changes() -> None:
    message, changed = legalised(calling("a"), frozenset({"a"}))
    assert (ids_of(message), changed) == (["a-2"], {"a": "a-2"})


def test_a_changed_id_does_not_push_a_legal_one_aside() -> None:
    assert ids_of(legalised(calling("x:1", "x_1"), frozenset())[0]) == ["x_1-2", "x_1"]


def test_a_long_id_is_cut() -> None:
    assert ids_of(legalised(calling("a" * 65), frozenset({"a" * 64}))[0]) == ["a" * 62 + "-2"]


@given(ids=st.lists(IDS, max_size=8), taken=TAKEN)
def test_ids_are_legal_unique_and_free(ids: list[str], taken: frozenset[str]) -> None:
    message, changed = legalised(calling(*ids), taken)
    new = ids_of(message)
    assert all(is_legal(call_id) and len(call_id) <= LONGEST for call_id in new)
    assert len({*new, *taken}) == len(new) + len(taken)
    assert all(changed.get(old, old) == new[ids.index(old)] for old in ids)


@given(ids=st.lists(IDS, max_size=8), taken=TAKEN)
def test_only_what_must_change_does_and_always_the_same_way(ids: list[str], taken: frozenset[str]) -> None:
    message, _ = legalised(calling(*ids), taken)
    for number, (old, new) in enumerate(zip(ids, ids_of(message), strict=True)):
        must = not is_legal(old) or old in taken or old in ids[:number]
        assert (old != new) is must
    assert legalised(calling(*ids), taken)[0] == message
    assert legalised(message, taken)[0] is message

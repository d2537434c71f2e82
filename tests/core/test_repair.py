"""The rescue in front of every request: what it returns can be sent, and says nothing untrue."""

from hypothesis import given
from hypothesis import strategies as st

from core.call_ids import is_legal
from core.history import Call, Message, Opaque, Result, Role, Text, assistant, user
from core.repair import repaired
from core.tools import outcome_unknown

UNKNOWN = outcome_unknown().text
ASK = user(Text("why is checkout slow?"))

IDS = st.sampled_from(["a", "b", "c", "a-2", "", "x:1"])
WORDS = st.sampled_from(["the deploy", "look at 14:05", " ", "", "…"])
BLOCKS = st.one_of(
    st.builds(Text, WORDS),
    st.builds(Call, IDS, st.just("logs"), st.just({})),
    st.builds(Result, IDS, WORDS, st.booleans()),
    st.just(Opaque("anthropic", {"type": "thinking", "thinking": "", "signature": "s"})),
)
MESSAGES = st.builds(Message, st.sampled_from(Role), st.lists(BLOCKS, max_size=4).map(tuple))
HISTORIES = st.lists(MESSAGES, max_size=8).map(tuple)


def call(call_id: str) -> Call:
    return Call(call_id, "logs", {})


def is_valid(messages: tuple[Message, ...]) -> bool:
    ids = [c.id for message in messages for c in message.calls]
    return (
        len(ids) == len(set(ids))
        and all(map(is_legal, ids))
        and all(_says_something(message) for message in messages)
        and all(
            _answers(before, after)
            for before, after in zip((None, *messages), (*messages, None), strict=True)
        )
    )


def _says_something(message: Message) -> bool:
    return any(not isinstance(block, Text) or block.text.strip() for block in message.blocks)


def _answers(before: Message | None, after: Message | None) -> bool:
    """Whether the second message answers exactly the calls of the first, before it says anything else."""
    results = [b.call_id for b in after.blocks if isinstance(b, Result)] if after else []
    leading = [b.call_id for b in after.blocks[: len(results)] if isinstance(b, Result)] if after else []
    calls = [c.id for c in before.calls] if before else []
    right_roles = (before is None or not calls or before.role is Role.ASSISTANT) and (
        after is None or not results or after.role is Role.USER
    )
    return right_roles and results == leading and sorted(results) == sorted(calls)


def test_a_valid_history_comes_back_as_the_same_object() -> None:
    history = (
        ASK,
        assistant(Text("looking"), call("a"), call("b")),
        user(Result("b", "5"), Result("a", "7"), Text("look at 14:05")),
        assistant(Text("the deploy")),
        user(Text("thanks")),
        user(Text("bye")),
    )
    assert repaired(history) is history


def test_a_call_without_a_result_has_an_unknown_outcome() -> None:
    assert repaired((ASK, assistant(call("a"), call("b")), user(Result("b", "5")))) == (
        ASK,
        assistant(call("a"), call("b")),
        user(Result("b", "5"), Result("a", UNKNOWN, is_error=True)),
    )


def test_calls_at_the_end_are_closed() -> None:
    assert repaired((ASK, assistant(call("a"))))[-1] == user(Result("a", UNKNOWN, is_error=True))


def test_a_message_between_a_call_and_its_result_does_not_lose_the_result() -> None:
    history = repaired((ASK, assistant(call("a")), assistant(Text("hm")), user(Result("a", "5 % errors"))))
    assert history[2] == user(Result("a", UNKNOWN, is_error=True))
    assert "5 % errors" in history[-1].text


def test_results_in_the_next_user_message_but_one_are_pulled_together() -> None:
    history = (
        ASK,
        assistant(call("a"), call("b")),
        user(Result("a", "1")),
        user(Result("b", "2"), Text("so?")),
    )
    assert repaired(history)[2:] == (user(Result("a", "1"), Result("b", "2")), user(Text("so?")))


def test_results_lead_their_message() -> None:
    history = (ASK, assistant(call("a")), user(Text("wait"), Result("a", "1")))
    assert repaired(history)[-1] == user(Result("a", "1"), Text("wait"))


def test_a_second_result_is_dropped_and_the_first_stays() -> None:
    history = (ASK, assistant(call("a")), user(Result("a", "first"), Result("a", "second")))
    assert repaired(history)[-1] == user(Result("a", "first"))


def test_a_result_without_a_call_becomes_marked_text() -> None:
    (first,) = repaired((user(Result("zz", "5 % errors"), Text("hi")),))
    assert not any(isinstance(block, Result) for block in first.blocks)
    assert "zz" in first.text
    assert "5 % errors" in first.text


def test_calls_with_one_id_are_told_apart_and_matched_by_position() -> None:
    history = (ASK, assistant(call("a"), call("a")), user(Result("a", "1"), Result("a", "2")))
    assert repaired(history)[1:] == (
        assistant(call("a"), call("a-2")),
        user(Result("a", "1"), Result("a-2", "2")),
    )


def test_an_id_used_again_later_is_told_apart() -> None:
    round_trip = (assistant(call("a")), user(Result("a", "1")))
    again = repaired((ASK, *round_trip, *round_trip))
    assert again[3:] == (assistant(call("a-2")), user(Result("a-2", "1")))


def test_empty_messages_are_left_out() -> None:
    assert repaired((ASK, assistant(), user(Text(" ")), assistant(Text("yes")))) == (
        ASK,
        assistant(Text("yes")),
    )


@given(history=HISTORIES)
def test_every_history_becomes_valid(history: tuple[Message, ...]) -> None:
    assert is_valid(repaired(history))


@given(history=HISTORIES)
def test_repairing_twice_changes_nothing(history: tuple[Message, ...]) -> None:
    once = repaired(history)
    assert repaired(once) is once


@given(history=HISTORIES)
def test_a_history_changes_exactly_when_it_was_not_valid(history: tuple[Message, ...]) -> None:
    assert (repaired(history) is history) is is_valid(history)


@given(history=HISTORIES)
def test_nobodys_words_and_no_call_of_the_model_are_lost(history: tuple[Message, ...]) -> None:
    def words(messages: tuple[Message, ...]) -> list[str]:
        texts = [b.text for message in messages for b in message.blocks if isinstance(b, Text)]
        return [text for text in texts if text.strip() and "<notice>" not in text]

    def calls(messages: tuple[Message, ...]) -> int:
        return sum(len(message.calls) for message in messages if message.role is Role.ASSISTANT)

    assert words(repaired(history)) == words(history)
    assert calls(repaired(history)) == calls(history)


@given(history=HISTORIES, more=HISTORIES)
def test_what_was_sent_is_not_rewritten_when_the_history_grows(
    history: tuple[Message, ...], more: tuple[Message, ...]
) -> None:
    """Behind an assistant message, as every next request is: the calls before it were closed already."""
    sent = repaired((*history, assistant(Text("done"))))
    assert repaired((*history, assistant(Text("done")), *more))[: len(sent)] == sent

"""Decided messages: what they are to the model, to their writer and to the conversation."""

from __future__ import annotations

from itertools import product

import pytest

from core.arrivals import PEOPLE_SOURCES, AuthorRole, Source
from core.inbox import FATE, RECEIPT, WISHES, Fate, InboxMessage, Receipt, goal_of, shown
from core.policy import Effect
from core.prompt import context_message, notice, person_message


def message(source: Source, effect: Effect, text: str = "look at the 14:05 deploy") -> InboxMessage:
    return InboxMessage(1, source, AuthorRole.MEMBER, "Ben", text, effect, 1_700_000_000.0)


def test_every_effect_has_its_receipt_and_its_fate() -> None:
    assert set(RECEIPT) == set(FATE) == set(Effect)


def test_exactly_the_wishes_wait() -> None:
    assert {effect for effect in Effect if FATE[effect] is Fate.WAITING} == WISHES


def test_no_message_bears_two_receipts_and_a_queued_one_says_so() -> None:
    assert RECEIPT[Effect.QUEUE] is Receipt.QUEUED
    assert {effect for effect in Effect if RECEIPT[effect] is Receipt.TAKEN} == {
        Effect.START,
        Effect.STEER,
        Effect.STOP,
    }
    assert RECEIPT[Effect.CONTEXT] is None
    assert RECEIPT[Effect.DENY] is None


def test_the_receipts_are_the_contracts() -> None:
    assert [receipt.value for receipt in Receipt] == ["eyes", "clock4", "white_check_mark"]


@pytest.mark.parametrize("source, effect", list(product(Source, Effect)))
def test_words_reach_the_model_verbatim_once_with_the_authors_name(source: Source, effect: Effect) -> None:
    block = shown(message(source, effect))
    assert block.text.count("look at the 14:05 deploy") == 1
    assert ("Ben" in block.text) is (source is not Source.NOTICE)


@pytest.mark.parametrize("source, effect", [*product([s for s in Source if s is not Source.NOTICE], Effect)])
def test_only_what_a_person_asked_for_instructs_the_model(source: Source, effect: Effect) -> None:
    form = person_message if source in PEOPLE_SOURCES and effect in WISHES else context_message
    at = "22:13:20Z"
    assert shown(message(source, effect)).text == form(
        "Ben", AuthorRole.MEMBER, at, "look at the 14:05 deploy"
    )


def test_a_notice_is_ours_and_no_persons() -> None:
    assert shown(message(Source.NOTICE, Effect.CONTEXT)).text == notice("look at the 14:05 deploy")


def test_a_goal_is_one_line_of_bounded_length() -> None:
    assert goal_of("why is\n\n  checkout slow?") == "why is checkout slow?"
    long = goal_of("word " * 100)
    assert len(long) <= 200
    assert long.endswith("word…")
    assert goal_of("x" * 200) == "x" * 200

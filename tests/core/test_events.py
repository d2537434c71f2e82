"""Facts are values, and `Input` is their closed union."""

from dataclasses import is_dataclass
from typing import get_args

import pytest

from core import events
from core.events import Began, Input


def test_every_fact_is_an_input_and_every_input_a_fact() -> None:
    facts = {
        thing
        for thing in vars(events).values()
        if isinstance(thing, type) and is_dataclass(thing) and thing.__module__ == events.__name__
    }
    assert facts == set(get_args(Input))


@pytest.mark.parametrize("fact", get_args(Input))
def test_a_fact_cannot_be_changed(fact: type) -> None:
    assert fact.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_no_open_batch_is_told_apart_from_a_batch_with_all_its_results() -> None:
    assert Began() != Began(open_calls=())

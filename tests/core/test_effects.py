"""Effects are values, `Effect` is their closed union, and the loop performs each of them."""

from dataclasses import is_dataclass
from typing import get_args

import pytest

from bot.flow.turn_loop import PERFORM
from core import effects
from core.effects import Effect


def test_every_wish_is_an_effect_and_every_effect_a_wish() -> None:
    wishes = {
        thing
        for thing in vars(effects).values()
        if isinstance(thing, type) and is_dataclass(thing) and thing.__module__ == effects.__name__
    }
    assert wishes == set(get_args(Effect))


def test_every_effect_is_performed_by_one_function() -> None:
    assert set(PERFORM) == set(get_args(Effect))
    assert len(set(PERFORM.values())) == len(PERFORM)


@pytest.mark.parametrize("effect", get_args(Effect))
def test_an_effect_cannot_be_changed(effect: type) -> None:
    assert effect.__dataclass_params__.frozen  # type: ignore[attr-defined]

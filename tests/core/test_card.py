"""A card begins with what is true of a turn of which nothing is known yet."""

from core.card import Card, CardLine, CardState, LineState
from core.usage import Usage


def test_a_card_is_live_or_released_and_nothing_between() -> None:
    assert [state.value for state in CardState] == ["live", "released"]


def test_a_card_can_be_stopped_only_where_that_is_said() -> None:
    assert not Card("T1", CardState.LIVE, "why is checkout slow?", "Investigating").stoppable


def test_a_card_that_knows_nothing_claims_nothing() -> None:
    card = Card("T1", CardState.RELEASED, "why?", "Done")
    assert (card.activity, card.lines, card.steered_by, card.usage, card.reason) == (
        "",
        (),
        (),
        Usage(),
        None,
    )


def test_a_line_without_a_known_duration_has_none() -> None:
    assert CardLine("c1", "logs", LineState.RUNNING).seconds is None

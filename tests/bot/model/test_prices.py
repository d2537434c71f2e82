"""Every kind of token has its price, and what has none is unknown, never free."""

import pytest

from bot.model.prices import cost_usd
from core.usage import Usage

MILLION = 1_000_000


@pytest.mark.parametrize(
    "usage, cost",
    [
        (Usage(input_tokens=MILLION), 3.0),
        (Usage(cache_read_tokens=MILLION), 0.3),
        (Usage(cache_write_tokens=MILLION), 3.75),
        (Usage(output_tokens=MILLION), 15.0),
        (Usage(), 0.0),
    ],
)
def test_each_kind_of_token_has_its_price(usage: Usage, cost: float) -> None:
    assert cost_usd(usage, "claude-3-7-sonnet-20250219") == pytest.approx(cost)


def test_prices_are_those_of_the_given_model() -> None:
    assert cost_usd(Usage(1000, 1000), "claude-opus-5-5") != cost_usd(Usage(1000, 1000), "claude-haiku-4-5")


@pytest.mark.parametrize("usage", [Usage(), Usage(1000, 1000)])
def test_an_unknown_model_has_no_price(usage: Usage) -> None:
    assert cost_usd(usage, "claude-unheard-of") is None
    assert cost_usd(usage) is None


def test_the_first_name_with_a_price_counts() -> None:
    told = cost_usd(Usage(1000), "claude-unheard-of", "claude-sonnet-5-5")
    assert told == cost_usd(Usage(1000), "claude-sonnet-5-5")

"""Waiting doubles up to a cap, obeys the provider, and ends at its bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retry import LONGEST_S, next_delay


@pytest.mark.parametrize("tries, delay", [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (10_000, 30)])
def test_the_wait_doubles_up_to_thirty_seconds(tries: int, delay: float) -> None:
    assert next_delay(tries, 0, 180, None, 0.0) == delay


def test_the_provider_is_never_asked_before_it_wants_to_be() -> None:
    assert next_delay(1, 0, 180, 45.0, 0.9) == 45.0


def test_a_short_wish_of_the_provider_does_not_shorten_the_wait() -> None:
    assert next_delay(5, 0, 180, 0.1, 0.0) == 8.0


def test_it_is_over_when_the_wait_would_pass_the_bound() -> None:
    assert next_delay(1, 179.5, 180, None, 0.0) == 0.5
    assert next_delay(1, 179.6, 180, None, 0.0) is None
    assert next_delay(1, 0, 180, 181.0, 0.0) is None


@given(
    tries=st.integers(1, 500),
    waited=st.floats(0, 1000),
    bound=st.floats(0, 1000),
    after=st.none() | st.floats(0, 1000),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_positive_and_within_the_bound(
    tries: int, waited: float, bound: float, after: float | None, jitter: float
) -> None:
    delay = next_delay(tries, waited, bound, after, jitter)
    if delay is not None:
        assert 0 < delay <= max(LONGEST_S, after or 0)
        assert waited + delay <= bound
        assert delay >= (after or 0)


def test_every_wait_together_stays_within_the_bound() -> None:
    waited, tries = 0.0, 1
    while (delay := next_delay(tries, waited, 180, None, 0.5)) is not None:
        waited, tries = waited + delay, tries + 1
    assert 130 < waited <= 180

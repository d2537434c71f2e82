"""Usage adds up, and what is not known is never counted as nothing."""

from hypothesis import given
from hypothesis import strategies as st

from core.usage import Usage, total

counts = st.integers(0, 10**6)
usages = st.builds(
    Usage, counts, counts, counts, counts, st.none() | st.integers(0, 100).map(float), st.booleans()
)


def test_nothing_costs_nothing() -> None:
    assert total([]) == Usage(0, 0, 0, 0, 0.0, exact=True)


@given(usages)
def test_a_single_request_is_its_own_total(usage: Usage) -> None:
    assert total([usage]) == usage


@given(st.lists(usages, max_size=5), st.lists(usages, max_size=5))
def test_a_total_is_the_same_however_the_requests_are_grouped(left: list[Usage], right: list[Usage]) -> None:
    assert total([total(left), total(right)]) == total([*left, *right])


@given(st.lists(usages, max_size=5))
def test_one_unknown_price_makes_the_cost_unknown(requests: list[Usage]) -> None:
    assert (total(requests).cost_usd is None) is any(usage.cost_usd is None for usage in requests)


@given(st.lists(usages, max_size=5))
def test_one_estimate_makes_the_total_an_estimate(requests: list[Usage]) -> None:
    assert total(requests).exact is all(usage.exact for usage in requests)

"""Tokens and money of model requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more requests.

    `exact` says that the provider reported them; those of a stream that broke off are estimated.
    `cost_usd` is None when a price is unknown, never 0 for it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = 0.0
    exact: bool = True


def total(usages: Iterable[Usage]) -> Usage:
    """The sum; its cost is unknown when any part's is, and it is exact only when every part is."""
    result = Usage()
    for usage in usages:
        cost = None if result.cost_usd is None or usage.cost_usd is None else result.cost_usd + usage.cost_usd
        result = Usage(
            result.input_tokens + usage.input_tokens,
            result.output_tokens + usage.output_tokens,
            result.cache_read_tokens + usage.cache_read_tokens,
            result.cache_write_tokens + usage.cache_write_tokens,
            cost,
            result.exact and usage.exact,
        )
    return result

"""What a request costs, from the price list that genai-prices ships: no network, unknown stays unknown.

https://github.com/pydantic/genai-prices
"""

from __future__ import annotations

from core.usage import Usage


def cost_usd(usage: Usage, *models: str, provider: str = "anthropic") -> float | None:
    """The cost by the first of the model names with a price; None when none has, or a kind of token has none.

    `usage` counts as Anthropic does: input tokens without those read from or written to the cache.
    """
    # Imported here: loading the price list takes 0.2 s and 10 MiB.
    from genai_prices import Usage as Tokens  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    tokens = Tokens(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    for model in models:
        try:
            price = calc_price(tokens, model, provider_id=provider)
        except (LookupError, ValueError):
            continue
        needed = {
            "input_mtok": usage.input_tokens,
            "cache_read_mtok": usage.cache_read_tokens,
            "cache_write_mtok": usage.cache_write_tokens,
            "output_mtok": usage.output_tokens,
        }
        if any(count and getattr(price.model_price, key, None) is None for key, count in needed.items()):
            return None
        return float(price.total_price)
    return None

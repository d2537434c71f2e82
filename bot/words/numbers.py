"""Tokens, money and durations in words. Pure."""

from __future__ import annotations

from core.usage import Usage


def tokens(usage: Usage) -> str:
    """All tokens, about when some of them are only estimated."""
    count = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    shown = (
        str(count)
        if count < 1_000
        else f"{count / 1_000:.1f}k"
        if count < 1_000_000
        else f"{count / 1e6:.1f}M"
    )
    return f"{'' if usage.exact else '≈ '}{shown} tokens"


def money(usage: Usage) -> str:
    """The cost; an unknown price is not zero."""
    if usage.cost_usd is None:
        return "cost unknown"
    shown = f"${usage.cost_usd:.2f}" if usage.cost_usd >= 0.01 or usage.cost_usd == 0 else "under $0.01"
    return shown if usage.exact else f"≈ {shown}"


def seconds(duration: float) -> str:
    """A duration in two units at most."""
    if duration < 10:
        return f"{duration:.1f} s"
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

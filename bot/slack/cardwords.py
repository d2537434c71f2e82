"""The words and numbers of a card. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.slack.text import plain, said
from core.card import Card, CardLine, CardState, LineState
from core.usage import Usage

LONGEST_TITLE = 72
LONGEST_GOAL = 300
LONGEST_HEADLINE = 150
LATEST_TIME = 32_503_680_000  # the year 3000: Slack and datetime refuse times that are no times


def title_of(line: CardLine, *, released: bool) -> str:
    """One call in a line, its time always in sight."""
    tail = "" if line.seconds is None else f" · {seconds(line.seconds)}"
    if released and line.state is LineState.RUNNING:
        tail += " · not finished"
    what = f"{line.title}: {line.detail}" if line.detail else line.title
    return plain(what, LONGEST_TITLE - len(tail)) + tail


def numbers(card: Card) -> str:
    """Tokens, money, duration."""
    parts = [tokens(card.usage), money(card.usage), seconds(max(0.0, card.updated_at - card.started_at))]
    return " · ".join(parts)


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


def updated(card: Card) -> str:
    """The time in each reader's own zone, with UTC for who cannot show that.

    Form: docs.slack.dev/messaging/formatting-message-text/#date-formatting
    """
    moment = min(max(0, int(card.updated_at)), LATEST_TIME)
    fallback = datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S UTC")
    return f"updated <!date^{moment}^{{time_secs}}|{fallback}>"


def headline(card: Card) -> str:
    """The state in a few words; a card always has some."""
    return card.headline or ("Working" if card.state is CardState.LIVE else "Ended")


def steered(card: Card) -> str:
    """Who changed the course."""
    return f"Steered by {said(', '.join(card.steered_by), LONGEST_HEADLINE)}" if card.steered_by else ""


def one_line(card: Card) -> str:
    """What is left of a card when another one has taken over."""
    calls = len(card.lines)
    work = [f"{calls} call{'' if calls == 1 else 's'}"] if calls else []
    return " · ".join([said(headline(card), LONGEST_HEADLINE), *work, numbers(card)])

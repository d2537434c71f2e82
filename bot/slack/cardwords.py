"""The words and numbers of a card. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.slack.text import plain, said
from bot.words.numbers import money, seconds, tokens
from core.card import Card, CardLine, CardState, LineState

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

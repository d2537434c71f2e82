"""The progress card as HTML. Pure.

Rule: a released card has nothing in progress, no activity and no button.
"""

from __future__ import annotations

from bot.console.html import Html, joined, tag
from bot.words.numbers import money, seconds, tokens
from core.card import Card, CardLine, CardState, LineState

MOST_LINES = 12
WORDS = {LineState.RUNNING: "running", LineState.DONE: "done", LineState.NOTED: "with a remark"}
SIGNS = {LineState.RUNNING: "", LineState.DONE: "✓", LineState.NOTED: "!"}


def draw_card(card: Card, ref: str, viewer: str) -> Html:
    """The whole card, or one line once another card has taken over."""
    if card.shrunk:
        return tag("div", _one_line(card), class_="card shrunk")
    live = card.state is CardState.LIVE
    return tag(
        "div",
        tag("div", tag("span", class_="spin", aria_hidden="true") if live else None,
            tag("strong", card.headline or ("Working" if live else "Ended"), role="status"),
            _stop(card, ref, viewer), class_="card-head"),
        tag("p", card.goal, class_="goal") if card.goal else None,
        _lines(card),
        tag("p", f"{card.activity}…", class_="activity") if live and card.activity else None,
        tag("p", f"Steered by {', '.join(card.steered_by)}", class_="steered") if card.steered_by else None,
        tag("p", _numbers(card), class_="numbers"),
        class_=f"card {card.state}",
    )  # fmt: skip


def _one_line(card: Card) -> Html:
    calls = f"{len(card.lines)} call{'' if len(card.lines) == 1 else 's'}" if card.lines else ""
    return joined(" · ".join(part for part in (card.headline, calls) if part), " · ", _numbers(card))


def _lines(card: Card) -> Html | None:
    if not card.lines:
        return None
    older, shown = card.lines[:-MOST_LINES], card.lines[-MOST_LINES:]
    folded = []
    if older:
        folded = [tag("details", tag("summary", f"{len(older)} earlier calls"), _list(older, card))]
    return joined(folded, _list(shown, card))


def _list(lines: tuple[CardLine, ...], card: Card) -> Html:
    return tag("ul", [_line(line, card) for line in lines], class_="calls")


def _line(line: CardLine, card: Card) -> Html:
    runs = line.state is LineState.RUNNING and card.state is CardState.LIVE
    number, _, title = line.title.partition(" ")
    return tag(
        "li",
        tag("span", SIGNS[line.state] if not runs else "", class_=f"sign {line.state}", role="img",
            aria_label=WORDS[line.state]),
        tag("span", number, class_="number"),
        tag("span", title, class_="tool"),
        tag("span", line.detail, class_="detail", title=line.detail),
        _duration(line, card) if line.seconds is not None else None,
    )  # fmt: skip


def _duration(line: CardLine, card: Card) -> Html:
    """What still runs is counted on by the page."""
    assert line.seconds is not None
    since = f"{card.updated_at - line.seconds:.3f}" if line.state is LineState.RUNNING else None
    return tag("span", seconds(line.seconds), class_="duration", data_since=since)


def _numbers(card: Card) -> Html:
    spent = max(0.0, card.updated_at - card.started_at)
    since = f"{card.started_at:.3f}" if card.state is CardState.LIVE else None
    told = f"{tokens(card.usage)} · {money(card.usage)} · "
    return joined(told, tag("span", seconds(spent), data_since=since))


def _stop(card: Card, ref: str, viewer: str) -> Html | None:
    if card.state is not CardState.LIVE or not card.stoppable:
        return None
    return tag(
        "form",
        tag("input", type="hidden", name="as", value=viewer),
        tag("input", type="hidden", name="ref", value=ref),
        tag("input", type="hidden", name="turn", value=card.turn_id),
        tag("button", "Stop", class_="stop", type="submit"),
        method="post", action="/stop", hx_post="/stop", hx_swap="none",
    )  # fmt: skip

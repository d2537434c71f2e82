"""The progress card in Block Kit. Pure.

Rule 1: a card never carries the status `error`: it would paint the whole plan red for a tool failure that the
turn got over (https://github.com/agentconnect-md/agentconnect/pull/1582); `pending` at the end does the same.
Rule 2: a released card has nothing in progress, no activity and no button, however it is drawn.
Rule 3: a simpler drawing leaves out form, never a truth.

A posted `plan` with `chat.update` is live for everybody in the thread and never expires, which a stream does
after five minutes (https://github.com/slackapi/python-slack-sdk/issues/1859).
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.slack.cardwords import (
    LONGEST_GOAL,
    LONGEST_HEADLINE,
    LONGEST_TITLE,
    headline,
    numbers,
    one_line,
    steered,
    title_of,
    updated,
)
from bot.slack.clicks import STOP_ACTION
from bot.slack.drawing import (
    LONGEST_FALLBACK,
    LONGEST_SECTION,
    Block,
    Drawing,
    Richness,
    context,
    section,
    too_heavy,
)
from bot.slack.text import cut, plain, said
from bot.words.metadata import of_card
from core.card import Card, CardLine, CardState, LineState
from core.history import Json

MOST_TASKS = (
    45  # a message shows about 45 task cards (https://github.com/agno-agi/agno/pull/7244); the limit is 50
)
MOST_LINES = 20  # of the plain drawing
SIGNS = {LineState.RUNNING: "◌", LineState.DONE: "✓", LineState.NOTED: "!"}


def draw_card(card: Card, richness: Richness = Richness.RICH) -> Drawing:
    """The card as one message; with so many calls that it would be too heavy, the older ones are folded."""
    if richness is Richness.BARE:
        words = said(_head(card), LONGEST_HEADLINE)
        return Drawing(text=words, blocks=[], metadata=_metadata(card))
    most = MOST_TASKS if richness is Richness.RICH else MOST_LINES
    fallback, blocks = _fallback(card), _blocks(card, richness, most)
    while too_heavy(fallback, blocks) and most > 1:
        most //= 2
        blocks = _blocks(card, richness, most)
    return Drawing(text=fallback, blocks=blocks, metadata=_metadata(card))


def _head(card: Card) -> str:
    """What heads the card; Slack takes no empty place."""
    words = headline(card)
    return words if plain(words, LONGEST_HEADLINE) else "Watchkeeper"


def _metadata(card: Card) -> dict[str, Json]:
    event, payload = of_card(card)
    return {"event_type": event, "event_payload": payload}


def _blocks(card: Card, richness: Richness, most: int) -> list[Block]:
    if richness is Richness.TEXT:
        return []
    if card.shrunk:
        return [context(one_line(card)), *_button(card)]
    head = f"*{said(_head(card), LONGEST_HEADLINE)}*"
    goal = said(card.goal, LONGEST_GOAL)
    work = _plan(card, most) if richness is Richness.RICH else _list(card, most)
    return [
        section(f"{head}\n{goal}" if goal else head),
        *work,
        *_footer(card),
        *_button(card),
    ]


def _footer(card: Card) -> list[Block]:
    live = card.state is CardState.LIVE
    doing = said(card.activity, LONGEST_HEADLINE) if live else ""
    told = [context(line) for line in (doing, steered(card)) if line]
    return [*told, context(f"{numbers(card)} · {updated(card)}")]


def _button(card: Card) -> list[Block]:
    if card.state is not CardState.LIVE or not card.stoppable:
        return []
    button = {
        "type": "button",
        "action_id": STOP_ACTION,
        "style": "danger",
        "text": {"type": "plain_text", "text": "Stop"},
        "value": card.turn_id,
    }
    return [{"type": "actions", "elements": [button]}]


def _folded(lines: Sequence[CardLine], most: int) -> tuple[int, Sequence[CardLine], Sequence[CardLine]]:
    """The place of the first line that is shown, those folded into one, and those shown."""
    if len(lines) <= most:
        return 0, (), lines
    first = len(lines) - most + 1
    return first, lines[:first], lines[first:]


def _folded_title(older: Sequence[CardLine]) -> str:
    noted = sum(line.state is LineState.NOTED for line in older)
    return f"{len(older)} earlier calls" + (f", {noted} with remarks" if noted else "")


def _plan(card: Card, most: int) -> list[Block]:
    """Without a title Slack says "Thinking completed": https://github.com/pwrdrvr/PwrAgent/pull/1582"""
    if not card.lines:
        return []
    released = card.state is CardState.RELEASED
    first, older, shown = _folded(card.lines, most)
    tasks = [_task("earlier", _folded_title(older), older, released=released)] if older else []
    tasks += [
        _task(f"call_{first + at}", title_of(line, released=released), [line], released=released)
        for at, line in enumerate(shown)
    ]
    title = plain(_head(card), LONGEST_TITLE)
    return [{"type": "plan", "title": title, "tasks": tasks}]


def _task(task_id: str, title: str, lines: Sequence[CardLine], *, released: bool) -> Block:
    runs = not released and any(line.state is LineState.RUNNING for line in lines)
    return {
        "type": "task_card",
        "task_id": task_id,
        "title": title or "call",
        "status": "in_progress" if runs else "complete",
    }


def _list(card: Card, most: int) -> list[Block]:
    lines = _listed(card, most)
    return [section(cut("\n".join(lines), LONGEST_SECTION, LONGEST_SECTION))] if lines else []


def _listed(card: Card, most: int) -> list[str]:
    released = card.state is CardState.RELEASED
    _, older, shown = _folded(card.lines, most)
    told = [f"{SIGNS[LineState.DONE]} {_folded_title(older)}"] if older else []
    for line in shown:
        ended = released and line.state is LineState.RUNNING
        sign = SIGNS[LineState.NOTED if ended else line.state]
        told.append(f"{sign} {said(title_of(line, released=released), LONGEST_TITLE * 2)}")
    return told


def _fallback(card: Card) -> str:
    """The card in words only; it is also all there is when Slack takes no blocks."""
    if card.shrunk:
        return one_line(card)
    live = card.state is CardState.LIVE
    told = [
        said(_head(card), LONGEST_HEADLINE),
        said(card.goal, LONGEST_GOAL),
        *_listed(card, 10),
        said(card.activity, LONGEST_HEADLINE) if live else "",
        steered(card),
        f"{numbers(card)} · {updated(card)}",
        'Write "!stop" in this thread to stop.' if live and card.stoppable else "",
    ]
    return cut("\n".join(line for line in told if line), LONGEST_FALLBACK, LONGEST_FALLBACK)

"""The side panel: how turns ended, what was decided about messages, and what it cost. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.console.html import Html, joined, tag
from bot.console.people import BY_ID
from bot.words.numbers import seconds

MOST_DECISIONS = 12
MEANINGS = {
    "completed": "Answered. This one counts.",
    "empty": "Ended without an answer.",
    "steered": "Cut at a safe point; the next turn goes on with the reply.",
    "drained": "Cut at a safe point for the shutdown; resumed after it.",
    "stopped": "Stopped by a person. Nothing goes on.",
    "over_budget": "The budget was spent.",
    "failed": "Failed, and the thread was told why.",
    "stale": "The worker died. Its successor recorded that, and went on.",
    "dispatched": "Waits for its helpers.",
    "awaiting": "Waits for an answer.",
    "parked": "Waits for a job.",
}
EFFECTS = {"start", "steer", "queue", "context", "stop", "deny"}


def draw_panel(shown: dict[str, Any] | None, settles: list[dict[str, Any]], oob: str | None = None) -> Html:
    """Everything that the records say about one conversation."""
    if shown is None:
        return tag("div", tag("p", "Nothing recorded yet: no message here was for Watchkeeper.",
                              class_="quiet"), id="records", hx_swap_oob=oob)  # fmt: skip
    return tag(
        "div",
        tag("h2", "How each turn ended"),
        _settles(shown, settles),
        tag("h2", "What was decided"),
        _decisions(shown["messages"]),
        tag("p", _cost(shown, settles), class_="cost"),
        id="records",
        hx_swap_oob=oob,
    )


def _settles(shown: dict[str, Any], settles: list[dict[str, Any]]) -> Html:
    open_turns = [turn for turn in shown["turns"] if turn["reason"] is None]
    lines = [_settle(record, len(settles) - at) for at, record in enumerate(reversed(settles))]
    if open_turns:
        number = tag("span", f"turn {len(shown['turns'])}", class_="number")
        words = tag("p", "No settle record yet: the card is live.")
        lines.insert(0, tag("li", tag("b", "running", class_="reason live"), number, words, class_="settle"))
    if not lines:
        return tag("p", "No turn has begun.", class_="quiet")
    return tag("ol", lines, class_="settles")


def _settle(record: dict[str, Any], number: int) -> Html:
    reason = str(record["reason"])
    facts = [
        seconds(_moment(record["settled_at"]) - _moment(record["started_at"])),
        _count(record["steps"], "step"),
        _count(record["tool_calls"], "call"),
        _money(record["cost_usd"]),
    ]
    by = record["cut_by"]
    released = "" if record["card_released_at"] else " · card not released yet"
    return tag(
        "li",
        tag("b", reason, class_=f"reason {reason}"),
        tag("span", f"turn {number}", class_="number"),
        tag("p", MEANINGS.get(reason, "")),
        tag("p", " · ".join(facts), f" · cut by {_name(by)}" if by else "", released, class_="facts"),
        class_="settle",
    )


def _decisions(messages: list[dict[str, Any]]) -> Html:
    decided = [one for one in messages if one["rule"] not in {"thread_history", None}]
    if not decided:
        return tag("p", "Nothing yet.", class_="quiet")
    return tag("ol", [_decision(one) for one in reversed(decided[-MOST_DECISIONS:])], class_="decisions")


def _decision(message: dict[str, Any]) -> Html:
    effect = str(message["effect"])
    words = " ".join(str(message["text"]).split())
    return tag(
        "li",
        tag("b", effect, class_=f"effect {effect if effect in EFFECTS else 'none'}"),
        tag("span", words[:60] + ("…" if len(words) > 60 else ""), class_="words", title=words[:400]),
        tag("span", f"{message['role']} · rule {message['rule']} · {message['fate']}", class_="rule"),
    )


def _cost(shown: dict[str, Any], settles: list[dict[str, Any]]) -> Html:
    count = sum(int(record[name] or 0) for record in settles for name in
                ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"))  # fmt: skip
    return joined(tag("b", _money(shown["cost_usd"])), f" for {_count(len(shown['turns']), 'turn')}"
                  f" · {count:,} tokens in settled turns")  # fmt: skip


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _money(cost: float | None) -> str:
    if cost is None:
        return "cost unknown"
    return f"${cost:.2f}" if cost >= 0.01 or cost == 0 else "under $0.01"


def _name(by: object) -> str:
    known = BY_ID.get(str(by))
    return known.name if known else str(by)

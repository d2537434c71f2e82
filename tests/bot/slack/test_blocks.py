"""The card in Block Kit, checked against the rules of the test Slack."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.ports import Post
from bot.slack.blocks import draw_card
from bot.slack.drawing import FALLBACK_BYTES, LONGEST_FALLBACK, MOST_BYTES, Drawing, Richness, shown
from bot.slack.posts import draw_chart, draw_post
from core.card import Card, CardLine, CardState, LineState
from core.reasons import Reason
from core.usage import Usage
from tests.servers.slack.blocks import checked_blocks
from tests.servers.slack.metadata import checked_metadata

LIVE = Card(
    turn_id="turn-1",
    state=CardState.LIVE,
    goal="why is checkout slow?",
    headline="Looking",
    activity="reading logs",
    lines=(
        CardLine("a", "logs", LineState.DONE, 3.24, "checkout"),
        CardLine("b", "metrics", LineState.RUNNING),
        CardLine("c", "deploys", LineState.NOTED, 0.5, "refused"),
    ),
    steered_by=("Ben",),
    usage=Usage(12_000, 300, 40, 5, 0.123),
    started_at=1_700_000_000,
    updated_at=1_700_000_125,
    stoppable=True,
)
RELEASED = replace(LIVE, state=CardState.RELEASED, reason=Reason.STOPPED, headline="Stopped by Ben")


def text_of(drawing: Drawing) -> str:
    return "\n".join([drawing.text, *shown(drawing.blocks)])


def tasks(drawing: Drawing) -> list[dict[str, Any]]:
    return next((block["tasks"] for block in drawing.blocks if block["type"] == "plan"), [])


def test_a_live_card_shows_its_calls_as_a_plan() -> None:
    drawing = draw_card(LIVE)
    assert [(task["title"], task["status"]) for task in tasks(drawing)] == [
        ("logs: checkout · 3.2 s", "complete"),
        ("metrics", "in_progress"),
        ("deploys: refused · 0.5 s", "complete"),
    ]
    assert [block["type"] for block in drawing.blocks] == [
        "section", "plan", "context", "context", "context", "actions",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "truth",
    [
        "Looking",
        "why is checkout slow?",
        "reading logs",
        "Steered by Ben",
        "12.3k tokens",
        "$0.12",
        "2 min 5 s",
        "<!date^1700000125^{time_secs}|22:15:25 UTC>",
        "metrics",
    ],
)
def test_no_drawing_leaves_out_a_truth(truth: str) -> None:
    whole = (Richness.RICH, Richness.PLAIN, Richness.TEXT)
    assert all(truth in text_of(draw_card(LIVE, richness)) for richness in whole)


def test_the_barest_drawing_says_the_state_and_what_the_message_is() -> None:
    bare, rich = draw_card(LIVE, Richness.BARE), draw_card(LIVE, Richness.RICH)
    assert (bare.text, bare.blocks, bare.metadata) == ("Looking", [], rich.metadata)


def test_a_simpler_drawing_keeps_the_button() -> None:
    for richness in (Richness.RICH, Richness.PLAIN):
        button = draw_card(LIVE, richness).blocks[-1]["elements"][0]
        assert (button["action_id"], button["value"]) == ("watchkeeper_stop", "turn-1")
    assert "!stop" in draw_card(LIVE, Richness.TEXT).text


@pytest.mark.parametrize("richness, shrunk, reason", list(product(Richness, (False, True), Reason)))
def test_a_released_card_has_nothing_in_progress(richness: Richness, shrunk: bool, reason: Reason) -> None:
    drawing = draw_card(replace(RELEASED, shrunk=shrunk, reason=reason), richness)
    assert "in_progress" not in json.dumps(drawing.blocks)
    assert "watchkeeper_stop" not in json.dumps(drawing.blocks)
    assert "reading logs" not in text_of(drawing)
    assert "!stop" not in drawing.text


def test_a_call_that_was_open_at_the_release_says_so() -> None:
    assert tasks(draw_card(RELEASED))[1]["title"] == "metrics · not finished"


def test_a_card_that_cannot_be_stopped_has_no_button() -> None:
    assert "watchkeeper_stop" not in json.dumps(draw_card(replace(LIVE, stoppable=False)).blocks)


def test_metadata_name_a_reason_only_when_released() -> None:
    assert draw_card(LIVE).metadata == {
        "event_type": "watchkeeper_card",
        "event_payload": {"turn_id": "turn-1", "state": "live"},
    }
    assert draw_card(replace(LIVE, reason=Reason.STALE)).metadata["event_payload"] == {
        "turn_id": "turn-1",
        "state": "live",
    }
    assert draw_card(RELEASED).metadata["event_payload"] == {
        "turn_id": "turn-1",
        "state": "released",
        "reason": "stopped",
    }


def test_a_shrunk_card_is_one_line() -> None:
    drawing = draw_card(replace(RELEASED, shrunk=True))
    assert drawing.text == "Stopped by Ben · 3 calls · 12.3k tokens · $0.12 · 2 min 5 s"
    assert [block["type"] for block in drawing.blocks] == ["context"]


def test_unknown_prices_are_not_zero_and_estimates_say_so() -> None:
    unknown = draw_card(replace(LIVE, usage=Usage(cost_usd=None, exact=False)))
    assert "≈ 0 tokens · cost unknown" in text_of(unknown)


def test_many_calls_are_folded_and_one_that_runs_stays_in_progress() -> None:
    lines = [CardLine(str(n), f"call {n}", LineState.DONE) for n in range(100)]
    lines[3] = CardLine("3", "slow", LineState.RUNNING)
    lines[4] = CardLine("4", "bad", LineState.NOTED)
    shown_tasks = tasks(draw_card(replace(LIVE, lines=tuple(lines))))
    assert len(shown_tasks) == 45
    assert (shown_tasks[0]["title"], shown_tasks[0]["status"]) == (
        "56 earlier calls, 1 with remarks",
        "in_progress",
    )
    assert shown_tasks[-1]["title"] == "call 99"


def check(drawing: Drawing) -> None:
    """What Slack would take, and our own smaller limits."""
    checked_blocks(drawing.blocks, lambda file: True)
    checked_metadata(drawing.metadata)
    assert 0 < len(drawing.text) <= LONGEST_FALLBACK
    assert len(drawing.text.encode()) <= FALLBACK_BYTES
    assert sum(len(text.encode()) for text in [drawing.text, *shown(drawing.blocks)]) <= MOST_BYTES
    for text in [drawing.text, *shown(drawing.blocks)]:
        assert "<!channel" not in text
        assert "<@U" not in text


WORDS = st.lists(
    st.sampled_from(
        ["<!channel>", "<@U123>", "@here", "&" * 40, "日本語" * 30, "a" * 300, "\x00\ud800", "\n", "🙂"]
    )
    | st.text(),
    max_size=12,
).map("".join)
LINES = st.builds(CardLine, WORDS, WORDS, st.sampled_from(LineState), st.none() | st.floats(0, 1e6), WORDS)
CARDS = st.builds(
    Card,
    turn_id=st.just("turn-1"),
    state=st.sampled_from(CardState),
    goal=WORDS,
    headline=WORDS,
    activity=WORDS,
    lines=st.lists(LINES, max_size=6).map(lambda lines: tuple(lines * 20)),
    steered_by=st.lists(WORDS, max_size=3).map(tuple),
    usage=st.builds(Usage, input_tokens=st.integers(0, 10**9), cost_usd=st.none() | st.floats(0, 1e6)),
    started_at=st.floats(0, 1e12),
    updated_at=st.floats(0, 1e12),
    reason=st.none() | st.sampled_from(Reason),
    shrunk=st.booleans(),
    stoppable=st.booleans(),
)


@settings(deadline=None, max_examples=50)
@given(CARDS, st.sampled_from(Richness))
def test_slack_takes_every_card(card: Card, richness: Richness) -> None:
    check(draw_card(card, richness))


@settings(deadline=None)
@given(WORDS.map(lambda words: words * 30), st.sampled_from(Richness))
def test_slack_takes_every_post(text: str, richness: Richness) -> None:
    check(draw_post(Post("p", "stopped", text), richness=richness))
    check(draw_chart(Post("p", "chart", text), "F1"))


def test_an_answer_names_its_turn_and_final_event_and_part() -> None:
    post = Post("p-1", "answer", "**done**", "turn-1", "e-9", part=2, parts=3)
    assert draw_post(post).metadata == {
        "event_type": "watchkeeper_answer",
        "event_payload": {
            "turn_id": "turn-1", "final_event_id": "e-9", "part": 2, "parts": 3, "post_id": "p-1",
        },
    }  # fmt: skip
    assert draw_post(post).text == "*done*"


def test_a_note_says_its_kind_and_names_no_turn_where_there_is_none() -> None:
    assert draw_post(Post("p-1", "stopped", "x")).metadata == {
        "event_type": "watchkeeper_note",
        "event_payload": {"kind": "stopped", "post_id": "p-1"},
    }

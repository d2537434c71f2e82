"""Messages as HTML: of people, of programs, ours, and what only one person is told. Pure."""

from __future__ import annotations

import re

from bot.console import cardform
from bot.console.clock import shown
from bot.console.draw_card import draw_card
from bot.console.html import Html, Part, joined, tag
from bot.console.identity import US
from bot.console.markdown import to_html
from bot.console.people import BY_ID, Person
from bot.console.rows import Kind, Message, PrivateNote
from core.evidence import HEADING

RECEIPTS = {
    "eyes": ("◉", "taken"),
    "clock4": ("◷", "queued for later"),
    "white_check_mark": ("✓", "read, and acted on"),
}
MENTION = re.compile(r"(@\w+)")


def draw_message(message: Message, viewer: Person, oob: str | None = None) -> Html:
    """One message with its author, its words and its receipts. A deleted one leaves its place."""
    name = f"m-{_id(message.ref)}"
    if message.deleted:
        return tag("li", id=name, data_at=message.ref, class_="gone", hidden=True, hx_swap_oob=oob)
    body = _BODY[message.kind](message, viewer)
    kind = f"message {message.kind} {_kind(message)}"
    return tag("li", body, id=name, data_at=message.ref, class_=kind, hx_swap_oob=oob)


def draw_note(note: PrivateNote) -> Html:
    """Words that only the viewer is told."""
    at = f"{note.sent_at:.6f}"
    return tag(
        "li",
        _face(US, "W", "us"),
        tag(
            "div",
            tag("p", tag("b", "Watchkeeper"), " ", tag("span", "Only you can see this"), class_="who"),
            to_html(note.text),
            class_="bubble",
        ),
        id=f"p-{note.id}",
        data_at=at,
        class_="message private",
    )


def _kind(message: Message) -> str:
    return "has-card" if message.card else message.event_type


def _id(ref: str) -> str:
    return ref.replace(".", "-")


def _person(message: Message, viewer: Person) -> Html:
    author = BY_ID.get(message.author)
    name, title = (author.name, author.title) if author else (message.author, "")
    head: list[Html] = [tag("b", name), tag("span", title, class_="title"), shown(message.sent_at)]
    if message.edited:
        head.append(tag("span", "edited"))
    own = _own(message, viewer) if message.author == viewer.id else None
    return joined(
        _face(message.author, name[:1], message.author),
        tag("div", tag("p", [Html(f"{part} ") for part in head], class_="who"), tag("p", _said(message.text),
            class_="said"), _receipts(message), own, class_="bubble"),
    )  # fmt: skip


def _app(message: Message, viewer: Person) -> Html:
    head = tag("p", tag("b", message.author), " ", tag("span", "alert", class_="title"), " ",
               shown(message.sent_at), class_="who")  # fmt: skip
    return joined(_face("app", "!", "app"), tag("div", head, to_html(message.text), class_="bubble"))


def _ours(message: Message, viewer: Person) -> Html:
    if message.card:
        card = draw_card(cardform.from_json(message.card), message.ref, viewer.id)
        return joined(_face(US, "W", "us"), tag("div", card, class_="bubble", aria_live="off"))
    kind = str(message.payload.get("kind") or "")
    title = "answer" if message.payload.get("final_event_id") else kind.replace("_", " ")
    if int(str(message.payload.get("parts") or 1)) > 1:
        title += f" {message.payload.get('part')} of {message.payload.get('parts')}"
    head = tag("p", tag("b", "Watchkeeper"), " ", tag("span", title, class_="title"), " ",
               shown(message.sent_at), class_="who")  # fmt: skip
    return joined(_face(US, "W", "us"), tag("div", head, _what(message), class_="bubble"))


def _what(message: Message) -> Html:
    if message.file is None:
        answer, heading, cited = message.text.partition(f"\n{HEADING}\n")
        folded = tag("details", tag("summary", "Calls cited"), to_html(cited), class_="cited")
        return joined(to_html(answer), folded if heading else None)
    address = f"/files/{message.file}.png"
    picture = tag("img", src=address, alt=message.text or "Chart", loading="lazy")
    return tag("figure", tag("a", picture, href=address), tag("figcaption", message.text))


_BODY = {Kind.PERSON: _person, Kind.APP: _app, Kind.OURS: _ours}


def _face(who: str, letter: str, tone: str) -> Html:
    return tag("span", letter, class_=f"face tone-{tone}", aria_hidden="true")


def _said(text: str) -> list[Html]:
    """A person's words as they are, with mentions set off."""
    return [
        tag("span", part, class_="mention") if at % 2 else joined(part)
        for at, part in enumerate(MENTION.split(text))
    ]


def _receipts(message: Message) -> Html | None:
    if not message.receipts:
        return None
    shown_ones = [
        tag("span", tag("span", sign, aria_hidden="true"), f" {words}", class_=f"receipt {name}")
        for name in message.receipts
        for sign, words in [RECEIPTS.get(name, ("•", name))]
    ]
    return tag("p", shown_ones, class_="receipts")


def _own(message: Message, viewer: Person) -> Html:
    """Change or take back one's own words."""
    hidden = joined(tag("input", type="hidden", name="as", value=viewer.id),
                    tag("input", type="hidden", name="ref", value=message.ref))  # fmt: skip
    parts: list[Part] = [
        tag("summary", "⋯", aria_label="Change or delete this message"),
        tag("form", hidden, tag("label", "Your words", tag("textarea", message.text, name="text", rows=2)),
            tag("button", "Save"), method="post", action="/edit", hx_post="/edit", hx_swap="none"),
        tag("form", hidden, tag("button", "Delete", class_="danger"), method="post", action="/delete",
            hx_post="/delete", hx_swap="none"),
    ]  # fmt: skip
    return tag("details", *parts, class_="own")

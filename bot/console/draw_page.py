"""The page around a thread: people to be, incidents to look at, the composer, and what one may try. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from bot.console.clock import shown
from bot.console.html import Html, Value, joined, tag
from bot.console.people import CAST, Person
from bot.console.records_port import Process
from bot.console.rows import Message

HTMX = '{"includeIndicatorCSS": false, "history": false, "extensions": "sse, upsert"}'
PATIENT = '{"sse": {"reconnectDelay": 300, "reconnectMaxDelay": 1500, "connectTimeout": 8000}}'
AWAY = "The worker is gone. Its supervisor starts it again…"


@dataclass(frozen=True, slots=True)
class Page:
    """What a page is drawn from. `thread` is None on the page that begins a new incident."""

    viewer: Person
    change: int
    roots: Sequence[Message]
    live: frozenset[str]
    process: Process
    choices: Sequence[tuple[str, str]]
    thread: str | None = None
    lines: Sequence[Html] = ()
    panel: Html = field(default=Html(""))


def address(viewer: Person, thread: str | None = None, **more: str) -> str:
    """Where a thread is shown to a person; without one, where a new incident begins."""
    path = f"/t/{thread}" if thread else "/"
    return f"{path}?{urlencode({'as': viewer.id, **more})}"


def draw_page(page: Page) -> str:
    """The whole document."""
    middle = _thread(page) if page.thread else _welcome(page)
    body = tag(
        "body",
        tag("a", "Skip to the composer", href="#words", class_="skip"),
        _top(page),
        tag(
            "p", "The worker is gone. Its supervisor starts it again…", id="away", role="status", hidden=True
        ),
        tag(
            "div",
            tag("nav", draw_threads(page.roots, page.live, page.viewer, page.thread), aria_label="Incidents"),
            tag("main", middle, id="main"),
            _side(page) if page.thread else None,
            class_="columns" if page.thread else "columns alone",
        ),
    )
    return f'<!doctype html><html lang="en">{_head()}{body}</html>'


def _head() -> Html:
    # All but the last run before the page is parsed: once it is, htmx begins at once, extensions or not.
    scripts = ("theme.js", "htmx.min.js", "hx-sse.min.js", "hx-upsert.min.js", "console.js")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="htmx-config", content=HTMX),
        tag("title", "Watchkeeper"),
        tag("link", rel="icon", href="/static/mark.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/static/console.css"),
        [tag("script", src=f"/static/{name}", defer=name == scripts[-1]) for name in scripts],
    )


def _top(page: Page) -> Html:
    kind = "no key needed" if page.process.scripted else "language model"
    mark = tag("img", src="/static/mark.svg", alt="", width=24, height=24)
    model = tag("span", tag("b", page.process.model_name), f" {kind}", class_="model")
    return tag(
        "header",
        tag("a", mark, tag("span", "Watchkeeper"), href=address(page.viewer, new="1"), class_="brand"),
        tag("div", model, tag("button", "◐", id="theme", type="button", aria_label="Light or dark"),
            class_="tools"),
        tag("div", tag("span", "You are", id="be", class_="be"), [_be(person, page) for person in CAST],
            class_="cast", role="group", aria_labelledby="be"),
        class_="top",
    )  # fmt: skip


def _be(person: Person, page: Page) -> Html:
    current = person is page.viewer
    more = {} if page.thread else {"new": "1"}
    return tag(
        "a",
        tag("span", person.name[:1], class_=f"face tone-{person.id}", aria_hidden="true"),
        tag("span", tag("b", person.name), " ", tag("small", person.title)),
        href=address(person, page.thread, **more),
        title=person.about,
        aria_current="true" if current else None,
    )


def draw_threads(
    roots: Sequence[Message], live: frozenset[str], viewer: Person, thread: str | None, oob: str | None = None
) -> Html:
    """The list of incidents, newest first."""
    new = tag("li", tag("a", "+ New incident", href=address(viewer, new="1"), class_="new",
                        aria_current=None if thread else "page"))  # fmt: skip
    known = [_root(root, live, viewer, thread) for root in reversed(roots)]
    return tag("ol", new, known, id="threads", hx_swap_oob=oob)


def _root(root: Message, live: frozenset[str], viewer: Person, thread: str | None) -> Html:
    words = " ".join(root.text.replace("*", "").replace("@watchkeeper", "").split())
    works = root.ref in live
    state = "working" if works else "at rest"
    link = tag(
        "a",
        tag("span", class_="dot live" if works else "dot", role="img", aria_label=state),
        tag("span", words[:70] + ("…" if len(words) > 70 else ""), class_="what"),
        shown(root.sent_at),
        href=address(viewer, root.ref),
        aria_current="page" if root.ref == thread else None,
    )  # fmt: skip
    return tag("li", link)


def _thread(page: Page) -> Html:
    assert page.thread is not None
    query = urlencode({"as": page.viewer.id, "thread": page.thread, "since": page.change})
    stream = tag("div", id="stream", hx_swap="none", hx_config=PATIENT,
                 attrs={"hx-sse:connect": f"/events?{query}"})  # fmt: skip
    messages = tag("ol", list(page.lines), id="messages", role="log", aria_live="polite",
                   aria_label="Messages of this incident", tabindex="0")  # fmt: skip
    return joined(stream, messages, composer(page.viewer, page.thread))


def composer(viewer: Person, thread: str | None) -> Html:
    """Where one writes. What the words would do is shown while they are typed."""
    words = tag(
        "textarea",
        "" if thread else "@watchkeeper ",
        id="words",
        name="text",
        rows=2,
        required=True,
        aria_describedby="preview hints",
        placeholder=f"Write as {viewer.name}…" if thread else "@watchkeeper why is checkout slow?",
        hx_post="/preview",
        hx_trigger="input delay:120ms, load",
        hx_target="#preview",
        hx_include="closest form",
    )
    hidden = [tag("input", type="hidden", name="as", value=viewer.id)]
    send: dict[str, Value] = {"method": "post", "action": "/say"}
    if thread:
        hidden.append(tag("input", type="hidden", name="thread", value=thread))
        send |= {"hx-post": "/say", "hx-swap": "none"}
    return tag(
        "form",
        tag("div", id="preview", aria_live="polite"),
        tag("label", f"Message as {viewer.name}", for_="words", class_="unseen"),
        tag("div", words, tag("button", "Send", type="submit", class_="send"), class_="write"),
        _hints() if thread else None,
        hidden,
        attrs=send,
        class_="composer",
    )


def _hints() -> Html:
    pairs = (("reply", "to steer"), ("!", "= now"), ("later:", "= after this"), ("!stop", "= stop"))
    return tag("p", [tag("span", tag("kbd", key), f" {words}") for key, words in pairs], id="hints",
               class_="hints")  # fmt: skip


def _welcome(page: Page) -> Html:
    steps = (
        ("It shows its work", "A card in the thread lists every call, live."),
        ("You can steer it", "Reply while it works. It reads you at the next safe point."),
        ("It always ends on record", "Kill the process: its turn is settled, and the work goes on."),
    )
    options = [tag("option", words, value=choice) for choice, words in page.choices]
    pick = tag("label", "What goes wrong ", tag("select", options, name="choice"), class_="pick")
    start = tag(
        "form",
        tag("input", type="hidden", name="as", value=page.viewer.id),
        tag("button", "Start the incident", type="submit", class_="go"),
        pick if len(options) > 1 else None,
        method="post",
        action="/begin",
        class_="begin",
    )
    return tag(
        "section",
        tag("h1", "An incident channel with an investigator in it"),
        tag("p", "An alert comes in, somebody mentions Watchkeeper, and it looks into it with many tools at "
                 "once, while you watch and steer.", class_="lead"),
        start,
        tag("ul", [tag("li", tag("b", head), tag("span", words)) for head, words in steps], class_="steps"),
        tag("h2", "Or ask it something yourself"),
        composer(page.viewer, None),
        class_="welcome",
    )  # fmt: skip


def _side(page: Page) -> Html:
    assert page.thread is not None
    tries = tag("details", tag("summary", tag("h2", "See the promise kept")), _tries(page), open=True)
    return tag("aside", tries, page.panel, aria_label="Records of this incident")


def _tries(page: Page) -> Html:
    buttons = [
        ("reply", "Reply now", "A steer in the middle of the batch, in your name."),
        ("guest", "Reply as a guest", "Gus is refused, and only he is told: be Gus to see it."),
    ]
    if page.process.kill and page.process.restart:
        buttons += [
            ("kill", "Kill the worker", "kill -9. Its supervisor restarts it; the lost turn is settled."),
            ("restart", "Restart", "SIGTERM: the turn is cut at a safe point, and resumed."),
        ]
    reveal = None
    if page.choices:
        reveal = tag("p", tag("button", "What was it really?", type="button", class_="try reveal",
                              hx_post="/reveal", hx_target="#truth"),
                     tag("span", "Look once it has answered.", id="truth", aria_live="polite"))  # fmt: skip
    fields = joined(
        tag("input", type="hidden", name="as", value=page.viewer.id),
        tag("input", type="hidden", name="thread", value=page.thread),
    )
    return tag(
        "form",
        fields,
        [
            tag("p", tag("button", label, type="submit", class_=f"try {what}", formaction=f"/try/{what}",
                         hx_post=f"/try/{what}", hx_swap="none"), tag("span", words))
            for what, label, words in buttons
        ],
        reveal,
        method="post",
        class_="tries",
    )  # fmt: skip

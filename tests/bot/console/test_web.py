"""The console over real HTTP: pages, changes with resume, escaping, and who may not speak with it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.console import cardform
from bot.console.channel import Channel
from bot.console.guard import is_ours
from bot.console.records_port import Inside, Opening, Process, Standing
from bot.console.rows import Kind
from bot.console.say import Mouth
from bot.console.web import ConsoleWeb
from bot.web.server import Server
from core.policy import policy
from tests.bot.chat_contract import LIVE, PNG, RELEASED
from tests.bot.console.test_say import Inbox

NASTY = '<script>alert(1)</script> "><img src=x onerror=alert(1)> [click](javascript:alert(1))'


class Tags(HTMLParser):
    """Every element of a page, as a browser would find it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


class Nothing:
    """Records in which nothing has happened yet, and a stage on which always the same does."""

    choices = ()
    running = False

    async def standing(self, conversation_id: str) -> Standing:
        return Standing(self.running, "ana" if self.running else None)

    async def settles(self, conversation_id: str) -> list[dict[str, Any]]:
        return []

    async def conversation(self, conversation_id: str) -> dict[str, Any] | None:
        return None

    async def begin(self, choice: str) -> Opening:
        return Opening("checkout is slow", "why?")

    def told(self) -> str:
        return ""


class Console:
    """A console that is served, and a browser's way of speaking with it."""

    def __init__(self, channel: Channel, http: aiohttp.ClientSession, url: str, inbox: Inbox) -> None:
        self.channel, self.http, self.url, self.inbox = channel, http, url, inbox
        self.nothing = Nothing()

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.http.get(f"{self.url}{path}", headers=headers) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, origin: str | None = None, **form: str) -> tuple[int, str]:
        headers = {"Origin": origin or self.url, "HX-Request": "true"}
        async with self.http.post(
            f"{self.url}{path}", data=form, headers=headers, allow_redirects=False
        ) as answer:
            return answer.status, answer.headers.get("Location") or await answer.text()

    async def event(self, path: str, **headers: str) -> str:
        """The first event with data on a stream."""
        async with self.http.get(f"{self.url}{path}", headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            event = ""
            async for line in answer.content:
                event += line.decode()
                if line == b"\n":
                    if "data:" in event:
                        return event
                    event = ""
        raise AssertionError("the stream ended without an event")


@pytest.fixture
async def console(channel: Channel) -> AsyncIterator[Console]:
    inbox, nothing = Inbox(), Nothing()
    inside = Inside(nothing, policy(), frozenset({"ben"}), Process("test model", scripted=True), nothing)
    pages = ConsoleWeb(channel, Mouth(channel, inbox.accept), inside, "127.0.0.1")
    app = web.Application()
    pages.add_routes(app)
    server = await Server.start(app, host="127.0.0.1", port=0)
    async with aiohttp.ClientSession() as http:
        found = Console(channel, http, f"http://127.0.0.1:{server.address[1]}", inbox)
        found.nothing = nothing
        yield found
    pages.close()
    await server.close()


async def test_an_empty_channel_offers_to_start_an_incident(console: Console) -> None:
    status, page = await console.get("/")
    assert (status, "Start the incident" in page) == (200, True)
    status, place = await console.post("/begin", **{"as": "ana"})
    assert status == 303
    status, page = await console.get(place)
    assert "checkout is slow" in page
    assert [incoming.key for incoming in console.inbox.stored] != []


async def test_nothing_that_anybody_writes_becomes_markup(console: Console) -> None:
    channel = console.channel
    root = await channel.write(Kind.PERSON, "ana", NASTY)
    await channel.write(Kind.APP, NASTY, NASTY, thread=root.ref)
    await channel.write(Kind.OURS, "watchkeeper", NASTY, thread=root.ref, payload={"kind": NASTY})
    card = cardform.to_json(LIVE).replace("why is checkout slow?", NASTY.replace('"', '\\"'))
    await channel.write(Kind.OURS, "watchkeeper", "x", thread=root.ref, card=card)
    await channel.write(Kind.OURS, "watchkeeper", NASTY, thread=root.ref, picture=PNG)
    await channel.whisper(root.ref, "ana", NASTY)
    _, page = await console.get(f"/t/{root.ref}")
    assert page.count("alert(1)") > 8
    tags = Tags()
    tags.feed(page)
    assert all("src" in attributes for name, attributes in tags.found if name == "script")
    assert [name for name, _ in tags.found if name == "img"] == ["img", "img"]  # our mark and the chart
    for _, attributes in tags.found:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "action"):
            assert attributes.get(name, "/").startswith(("/", "#"))


async def test_a_stream_brings_what_came_since_the_page_was_drawn(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    since = console.channel.change
    await console.channel.write(Kind.PERSON, "ben", "hi there", thread=root.ref)
    event = await console.event(f"/events?thread={root.ref}&since={since}")
    assert f"id: {console.channel.change}\n" in event
    assert "<hx-upsert" in event
    assert "hi there" in event
    assert "hello</p>" not in event


async def test_a_stream_resumes_after_the_last_event_and_changes_what_stood_before(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    reply = await console.channel.write(Kind.PERSON, "ben", "hi there", thread=root.ref)
    last = console.channel.change
    await console.channel.react(reply.ref, "eyes", None)
    event = await console.event(f"/events?thread={root.ref}&since=0", **{"Last-Event-ID": str(last)})
    assert 'hx-swap-oob="outerMorph"' in event
    assert "taken" in event
    assert "<hx-upsert" not in event


async def test_a_page_of_a_channel_that_was_replaced_is_loaded_again(console: Console) -> None:
    assert "event: reload" in await console.event("/events?thread=x&since=99")


async def test_private_words_are_on_one_persons_page_only(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    await console.channel.whisper(root.ref, "gus", "only full members")
    assert "only full members" in (await console.get(f"/t/{root.ref}?as=gus"))[1]
    assert "only full members" not in (await console.get(f"/t/{root.ref}?as=ana"))[1]


async def test_only_a_live_card_bears_a_stop_button(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    card = await console.channel.write(
        Kind.OURS, "watchkeeper", "x", thread=root.ref, card=cardform.to_json(LIVE)
    )
    assert 'action="/stop"' in (await console.get(f"/t/{root.ref}"))[1]
    await console.channel.revise(card.ref, card=cardform.to_json(RELEASED), payload={}, event_type="x")
    _, page = await console.get(f"/t/{root.ref}")
    assert 'action="/stop"' not in page
    assert "reading logs" not in page


async def test_the_preview_tells_each_person_what_their_words_would_do(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    console.nothing.running = True

    async def told(who: str, words: str) -> str:
        return (await console.post("/preview", **{"as": who, "text": words, "thread": root.ref}))[1]

    assert "Steers the work" in await told("mia", "look at the deploy")
    assert "Waits its turn" in await told("ana", "later: the bill")
    assert "Stops the work" in await told("ben", "!stop")
    assert "Only read along" in await told("ana", "@Ben what do you think?")
    assert "Refused" in await told("gus", "look at my laptop")
    assert "another company" not in await told("eve", "hello")
    console.nothing.running = False
    assert "Not for Watchkeeper" in await told("ana", "hello")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1"])
async def test_another_page_cannot_speak_for_a_person(console: Console, origin: str) -> None:
    status, _ = await console.post("/say", origin, **{"as": "ana", "text": "@watchkeeper hi"})
    assert status == 403
    assert console.inbox.stored == []


async def test_a_foreign_name_that_points_here_sees_nothing(console: Console) -> None:
    status, _ = await console.get("/", Host="evil.example")
    assert status == 403


@pytest.mark.parametrize(
    "host,ours",
    [
        ("127.0.0.1:8080", True),
        ("localhost:8080", True),
        ("[::1]:8080", True),
        ("10.1.2.3:8080", True),
        ("watch.example:8080", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_names_that_nobody_else_can_point_here_are_ours(host: str, ours: bool) -> None:
    assert is_ours(host, "watch.example") is ours


async def test_nobody_changes_or_deletes_what_somebody_else_wrote(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    for path in ("/edit", "/delete"):
        status, _ = await console.post(path, **{"as": "ben", "ref": root.ref, "text": "x"})
        assert status == 403
    assert (await console.channel.message(root.ref) or root).text == "hello"


async def test_every_answer_forbids_scripts_from_elsewhere(console: Console) -> None:
    async with console.http.get(f"{console.url}/?new=1") as answer:
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        page = await answer.text()
    assert not re.search(r"<script(?![^>]*src=\"/static/)", page)
    assert not re.search(r"\sstyle=|\son[a-z]+=", page)
    for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        assert (await console.get(name))[0] == 200


async def test_without_a_supervisor_the_page_offers_no_kill(console: Console) -> None:
    root = await console.channel.write(Kind.PERSON, "ana", "hello")
    _, page = await console.get(f"/t/{root.ref}")
    assert "Kill the worker" not in page
    assert (await console.post("/try/kill", **{"as": "ana", "thread": root.ref}))[0] == 204

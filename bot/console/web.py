"""The console over HTTP: the page, its changes, and what a person does on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from typing import TypeAlias

from aiohttp import hdrs, web
from multidict import MultiDictProxy

from bot.console import people
from bot.console.channel import Channel
from bot.console.draw_page import address
from bot.console.guard import Handler, guarded
from bot.console.html import joined, tag
from bot.console.people import Person
from bot.console.preview import draw_foresight, foresee
from bot.console.records_port import Inside
from bot.console.rows import Kind, Message
from bot.console.say import Mouth
from bot.console.stream import stream
from bot.console.view import View

LONGEST_WORDS = 40_000
Form: TypeAlias = "MultiDictProxy[str | bytearray | bytes | web.FileField]"

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
ALERTS = "Alertmanager"
STEER = "! Leave that for now: what was deployed in the last hour?"
GUESTS_WISH = "Please look at my laptop instead."


class ConsoleWeb:
    """The pages of one channel. `name` is the host name that was configured."""

    def __init__(self, channel: Channel, mouth: Mouth, inside: Inside, name: str) -> None:
        self._channel = channel
        self._mouth = mouth
        self._inside = inside
        self._name = name
        self._closing = asyncio.Event()

    def add_routes(self, app: web.Application) -> None:
        """Add everything, behind the guard."""

        def add(method: str, path: str, handler: Handler) -> None:
            app.router.add_route(method, path, guarded(handler, self._name))

        add("GET", "/", self._front)
        add("GET", "/t/{thread}", self._thread)
        add("GET", "/events", self._events)
        add("GET", "/files/{number:[0-9]{1,12}}.png", self._file)
        add("GET", r"/static/{name:[a-z-]+(?:\.min)?\.(?:css|js|svg)}", _static)
        add("POST", "/preview", self._preview)
        add("POST", "/begin", self._begin)
        add("POST", "/say", self._say)
        add("POST", "/edit", self._edit)
        add("POST", "/delete", self._delete)
        add("POST", "/stop", self._stop)
        add("POST", "/reveal", self._reveal)
        add("POST", "/try/{what:reply|guest|kill|restart}", self._try)

    def close(self) -> None:
        """Let the streams end."""
        self._closing.set()
        self._channel.wake()

    # --- looking ------------------------------------------------------------------------------------------

    async def _front(self, request: web.Request) -> web.Response:
        """The newest incident, or the page that begins one."""
        viewer = people.person(request.query.get("as"))
        roots = await self._channel.messages("ref = thread AND NOT deleted")
        if roots and "new" not in request.query:
            raise web.HTTPFound(address(viewer, roots[-1].ref))
        return _html(await self._view(viewer, None).page())

    async def _thread(self, request: web.Request) -> web.Response:
        viewer, thread = people.person(request.query.get("as")), request.match_info["thread"]
        if await self._channel.message(thread) is None:
            raise web.HTTPFound(address(viewer, new="1"))
        return _html(await self._view(viewer, thread).page())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        view = self._view(people.person(request.query.get("as")), request.query.get("thread", ""))
        return await stream(request, view, self._closing)

    async def _file(self, request: web.Request) -> web.Response:
        content = await self._channel.file(int(request.match_info["number"]))
        if content is None:
            raise web.HTTPNotFound
        return web.Response(
            body=content, content_type="image/png", headers={hdrs.CACHE_CONTROL: "private, max-age=86400"}
        )

    def _view(self, viewer: Person, thread: str | None) -> View:
        return View(self._channel, self._inside, viewer, thread)

    # --- doing --------------------------------------------------------------------------------------------

    async def _preview(self, request: web.Request) -> web.Response:
        form = await request.post()
        words, viewer = str(form.get("text", ""))[:LONGEST_WORDS], _viewer(form)
        if not words.strip():
            return _html(tag("p", "What your words would do is told here while you type."))
        thread = str(form["thread"]) if form.get("thread") else None
        return _html(draw_foresight(await foresee(self._inside, viewer, words, thread), viewer))

    async def _begin(self, request: web.Request) -> web.Response:
        """The alert comes in, and somebody on call mentions us in its thread."""
        form = await request.post()
        opening = await self._inside.stage.begin(str(form.get("choice", "")))
        alert = await self._channel.write(Kind.APP, ALERTS, opening.alert)
        await self._mouth.say(_viewer(form), f"@watchkeeper {opening.question}", alert.ref)
        raise web.HTTPSeeOther(address(_viewer(form), alert.ref))

    async def _say(self, request: web.Request) -> web.Response:
        form = await request.post()
        words, viewer = str(form.get("text", "")).strip(), _viewer(form)
        if not words:
            return _done(request, viewer, str(form.get("thread", "")) or None)
        thread = await self._known(str(form["thread"])) if form.get("thread") else None
        message = await self._mouth.say(viewer, words[:LONGEST_WORDS], thread.ref if thread else None)
        return _done(request, viewer, message.thread)

    async def _edit(self, request: web.Request) -> web.Response:
        form = await request.post()
        message, words = await self._own(form), str(form.get("text", "")).strip()
        if words and words != message.text:
            await self._mouth.edit(message, words[:LONGEST_WORDS])
        return _done(request, _viewer(form), message.thread)

    async def _delete(self, request: web.Request) -> web.Response:
        form = await request.post()
        message = await self._own(form)
        await self._mouth.delete(message)
        return _done(request, _viewer(form), message.thread)

    async def _stop(self, request: web.Request) -> web.Response:
        form = await request.post()
        card = await self._known(str(form.get("ref", "")))
        await self._mouth.press_stop(_viewer(form), card, str(form.get("turn", ""))[:80])
        return _done(request, _viewer(form), card.thread)

    async def _try(self, request: web.Request) -> web.Response:
        """The buttons that show the promise kept."""
        form, what = await request.post(), request.match_info["what"]
        viewer, thread = _viewer(form), await self._known(str(form.get("thread", "")))
        process = self._inside.process
        match what:
            case "reply":
                await self._mouth.say(viewer, STEER, thread.ref)
            case "guest":
                await self._mouth.say(people.person("gus"), GUESTS_WISH, thread.ref)
            case "kill" if process.kill:
                _soon(process.kill)
            case "restart" if process.restart:
                _soon(process.restart)
        return _done(request, viewer, thread.ref)

    async def _reveal(self, request: web.Request) -> web.Response:
        """For a person who asks: what changes nothing is asked with a POST, so that no tool can read it."""
        told = self._inside.stage.told()
        return _html(joined("It was: ", tag("b", told)) if told else "Nobody knows.")

    async def _known(self, ref: str) -> Message:
        found = await self._channel.message(ref)
        if found is None:
            raise web.HTTPNotFound(text="There is no such message.\n")
        return found

    async def _own(self, form: Form) -> Message:
        message = await self._known(str(form.get("ref", "")))
        if message.kind is not Kind.PERSON or message.author != _viewer(form).id:
            raise web.HTTPForbidden(text="That message is somebody else's.\n")
        return message


def _viewer(form: Form) -> Person:
    return people.person(str(form.get("as", "")))


def _soon(end: Callable[[], None]) -> None:
    """Once the answer is on its way."""
    asyncio.get_running_loop().call_later(0.15, end)


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def _done(request: web.Request, viewer: Person, thread: str | None) -> web.Response:
    """The page hears of it by its stream; without a script it is loaded again."""
    if request.headers.get("HX-Request") == "true":
        return web.Response(status=204)
    raise web.HTTPSeeOther(address(viewer, thread))


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    found = files("bot.console").joinpath("static", name)
    if not found.is_file():
        raise web.HTTPNotFound
    return web.Response(
        body=found.read_bytes(),
        content_type=TYPES[name.rpartition(".")[2]],
        charset="utf-8",
        headers={hdrs.CACHE_CONTROL: "no-cache"},
    )

"""The addresses beside the Web API: upload and download of files, answers to interactions."""

from __future__ import annotations

import time

from aiohttp import web

from tests.servers.slack.api import BOT_TOKEN
from tests.servers.slack.shapes import Json
from tests.servers.slack.state import Ephemeral, State

MOST_USES = 5
LIFE_S = 30 * 60


class Uploads:
    def __init__(self, state: State) -> None:
        self._state = state

    async def upload(self, request: web.Request) -> web.Response:
        """Bytes come as they are or as the first part of a form."""
        content = await _content(request)
        for file in self._state.files.values():
            if file.ticket == request.match_info["ticket"] and file.content is None:
                if len(content) != file.length:
                    return web.Response(status=400, text="length does not match")
                file.content = content
                return web.Response(text=f"OK - {len(content)}")
        return web.Response(status=404, text="no such upload")

    async def download(self, request: web.Request) -> web.Response:
        file = self._state.files.get(request.match_info["file"])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(status=302, headers={"Location": "https://watch.slack.com/"})
        if file is None or file.content is None:
            return web.Response(status=404)
        return web.Response(body=file.content, content_type=file.mimetype)

    async def respond(self, request: web.Request) -> web.Response:
        """What the app posts to a response_url."""
        url = self._state.responses.get(request.match_info["id"])
        if url is None:
            return web.json_response({"ok": False, "error": "invalid_url"}, status=404)
        if len(url.uses) >= MOST_USES or time.monotonic() - url.born > LIFE_S:
            return web.json_response({"ok": False, "error": "used_url"}, status=404)
        body: Json = await request.json()
        url.uses.append(body)
        self._apply(url.id, body)
        return web.json_response({"ok": True})

    def _apply(self, id_: str, body: Json) -> None:
        state, url = self._state, self._state.responses[id_]
        message, text, blocks = url.message, str(body.get("text") or ""), body.get("blocks") or []
        channel = state.workspace.channel(message.channel)
        if body.get("delete_original"):
            state.deleted(message, channel)
        elif body.get("replace_original"):
            before = message.json()
            message.text, message.blocks = text, blocks
            state.changed(message, before, channel)
        else:
            shown = Ephemeral(channel.id, url.user, text, blocks, message.thread_ts, state.clock.ts())
            state.ephemerals.append(shown)
        state.bell.ring()


async def _content(request: web.Request) -> bytes:
    if not request.content_type.startswith("multipart/"):
        return await request.read()
    for part in (await request.post()).values():
        if isinstance(part, web.FileField):
            return part.file.read()
        return part.encode() if isinstance(part, str) else bytes(part)
    return b""

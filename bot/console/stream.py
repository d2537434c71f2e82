"""What changed, as server-sent events; each carries the number from which a page can resume."""

from __future__ import annotations

import asyncio

from aiohttp import hdrs, web

from bot.console.guard import HEADERS
from bot.console.html import Html, tag
from bot.console.view import View

LOOK_EVERY_S = 1.0
TOGETHER_S = 0.03  # what changes at the same time is sent at once


async def stream(request: web.Request, view: View, is_closing: asyncio.Event) -> web.StreamResponse:
    """Send changes until the page goes away or the process ends."""
    response = web.StreamResponse(headers={**HEADERS, hdrs.CACHE_CONTROL: "no-store"})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    since = _number(request.headers.get("Last-Event-ID")) or _number(request.query.get("since"))
    if since > view.channel.change:  # the channel's file was replaced
        await response.write(b"event: reload\ndata: now\n\n")
        return response
    panel = ""
    try:
        while not is_closing.is_set():
            change = view.channel.change
            parts = await _changed(view, since) if change > since else []
            if (now := await view.panel(oob=True)) != panel:
                panel = now
                parts.append(now)
            await response.write(_event(change, parts))
            since = change
            await view.channel.wait_beyond(since, LOOK_EVERY_S)
            await asyncio.sleep(TOGETHER_S)
    except ConnectionResetError:
        pass
    return response


async def _changed(view: View, since: int) -> list[Html]:
    """New messages are put in their place, known ones changed where they stand, so that focus stays."""
    old, new = await view.lines_since(since)
    parts = list(old)
    if new:
        parts.append(tag("hx-upsert", new, hx_target="#messages", key="data-at", sort=True))
    return [*parts, await view.threads(oob=True)]


def _event(change: int, parts: list[Html]) -> bytes:
    if not parts:
        return b": here\n\n"
    lines = "".join(parts).splitlines() or [""]
    return "".join([f"id: {change}\n", *(f"data: {line}\n" for line in lines), "\n"]).encode()


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 15 else 0

"""Who may speak with the page: the browser of the person at this machine, and no page of somebody else's.

Rule 1: a request must name the console by an address, "localhost" or the configured name. A foreign name that
was made to point here (DNS rebinding) is none of these.
Rule 2: what changes something must come from the console's own page.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import hdrs, web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer" a form's POST names no origin
    "Cross-Origin-Resource-Policy": "same-origin",
}


def guarded(handler: Handler, name: str) -> Handler:
    """The handler behind both rules, its answers with headers that keep the page to itself."""

    async def behind(request: web.Request) -> web.StreamResponse:
        if not is_ours(request.host, name):
            raise web.HTTPForbidden(text=f"The console does not answer to the name {request.host[:100]!r}.\n")
        if request.method == hdrs.METH_POST and not is_from_here(request):
            raise web.HTTPForbidden(text="This came from another page.\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
            response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        return response

    return behind


def is_ours(host: str, name: str) -> bool:
    """Whether a Host header names this machine in a way that nobody else can arrange."""
    hostname = (urlsplit(f"//{host}").hostname or "").lower()
    if hostname in {"localhost", name.lower()}:
        return True
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True


def is_from_here(request: web.Request) -> bool:
    """Whether a browser says that its request comes from our own page."""
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None:
        return urlsplit(origin).netloc == request.host
    return request.headers.get("Sec-Fetch-Site") == "same-origin"

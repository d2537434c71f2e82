"""Reading the body of an HTTP answer, up to a limit."""

from __future__ import annotations

import aiohttp


class TooLarge(Exception):
    """The body goes on past the limit."""


async def whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; TooLarge past `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_chunked(65_536):
        size += len(piece)
        if size > most:
            raise TooLarge
        pieces.append(piece)
    return b"".join(pieces)

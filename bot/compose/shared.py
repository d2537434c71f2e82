"""What processes share over Redis, where `REDIS_URL` names one: bells, and the pace of their calls."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from bot.errors import Unusable
from bot.flow.bells import Bells, SharedBells
from bot.settings import Settings

if TYPE_CHECKING:
    from storage.pace import RedisPace
    from storage.redis_address import RedisAddress

# A client of Redis is loaded where there is a Redis: it takes a tenth of a second and six megabytes.


def build_bells(settings: Settings) -> Bells:
    """Bells for one process, or for one among others."""
    address = redis_address(settings)
    if address is None:
        return Bells()
    from storage.wake import Wake  # noqa: PLC0415

    return SharedBells(Wake(address))


def build_pace(settings: Settings, token: str) -> RedisPace | None:
    """What all who call with this token share; None where each process counts for itself."""
    address = redis_address(settings)
    if address is None:
        return None
    from storage.pace import RedisPace  # noqa: PLC0415

    # The token stands for workspace and app, which nobody knows yet. Its hash tells nothing of it.
    return RedisPace(address, hashlib.sha256(token.encode()).hexdigest()[:16])


def redis_address(settings: Settings) -> RedisAddress | None:
    """Where Redis is; raises Unusable when the URL holds what no Redis client understands."""
    url = settings.env.redis_url
    if url is None:
        return None
    from storage.redis_address import RedisAddress  # noqa: PLC0415

    try:
        return RedisAddress(url.get_secret_value())
    except ValueError as fault:
        raise Unusable(f"REDIS_URL: {fault}") from None

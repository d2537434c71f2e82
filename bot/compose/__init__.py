"""The composition root: the one place that builds concrete things and puts them together.

Two doors lead into the same service, which does not know on which platform it stands. What a door does not
need is not loaded: the console starts without Slack's libraries.
"""

from __future__ import annotations

import socket

from bot.settings import Settings


async def serve(settings: Settings) -> int:
    """Run the Slack bot until a signal ends it; returns the exit code. Raises Unusable with the mend."""
    from bot.compose import service, slack  # noqa: PLC0415 - Slack's libraries load slowly

    return await service.run(settings, slack.SlackPlatform(settings))


async def local(
    settings: Settings, listener: socket.socket | None = None, *, restart_code: int | None = None
) -> int:
    """Run the web console in place of Slack.

    `listener` listens already, and outlives this process. `restart_code` is the exit code with which a
    supervisor is asked for another process; None where there is none.
    """
    from bot.compose import console  # noqa: PLC0415 - the service loads slowly

    return await console.run(settings, listener, restart_code)

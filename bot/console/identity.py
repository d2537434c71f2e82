"""Who we are on the console, and how its places and messages are named."""

from __future__ import annotations

from core.arrivals import Thread

PLATFORM = "console"
WORKSPACE = "local"
CHANNEL = "incidents"
US = "watchkeeper"


def thread_of(root: str) -> Thread:
    """The address of the thread that this message began."""
    return Thread(PLATFORM, WORKSPACE, CHANNEL, root)


def message_key(ref: str) -> str:
    """The key of a message, the same however often it is handed in."""
    return f"{PLATFORM}:{WORKSPACE}:{CHANNEL}:{ref}"

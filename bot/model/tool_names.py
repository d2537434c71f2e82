"""Tool names as the provider takes them: `^[a-zA-Z0-9_-]{1,64}$`, the same in declarations and in history.

MCP allows 128 signs and dots, and models invent names ("functions.Bash:0"); one such name in the history
makes every later request fail (anomalyco/opencode#1279, ChromeDevTools/chrome-devtools-mcp#1169).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace

from core.history import Call, Message

LONGEST = 64
_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_ILLEGAL_SIGN = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST = 8


def wire_name(name: str) -> str:
    """The name itself where it is legal, else a legal one that names no other tool."""
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{_ILLEGAL_SIGN.sub('_', name)[: LONGEST - _DIGEST - 1]}_{digest}"


def with_own_names(message: Message, names: Iterable[str]) -> Message:
    """The message with our names in its calls, where the wire has others."""
    ours = {wire_name(name): name for name in names if wire_name(name) != name}
    if not any(call.name in ours for call in message.calls):
        return message
    blocks = (replace(b, name=ours.get(b.name, b.name)) if isinstance(b, Call) else b for b in message.blocks)
    return replace(message, blocks=tuple(blocks))

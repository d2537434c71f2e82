"""How the tools of an MCP server appear to us: their names, their class, their description.

A tool's annotations are hints of the server (https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations);
whoever configures a server trusts it with them, and can overrule each by `[tools.NAME]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import mcp_types as types

from bot.tools.clean import bound, clean
from core.tools import ToolClass, ToolSpec

LONGEST_NAME = 64  # the Messages API: tool names match ^[a-zA-Z0-9_-]{1,64}$
DESCRIPTION_BYTES = 4_096
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def specs_by_name(
    entry: str, tools: Sequence[types.Tool], timeout_s: float
) -> Mapping[str, tuple[str, ToolSpec]]:
    """Our name of each tool → the server's own name and the spec, in the server's order."""
    found: dict[str, tuple[str, ToolSpec]] = {}
    for tool in tools:
        name = _name(entry, tool.name, set(found))
        if name not in found:
            found[name] = (tool.name, _spec(name, tool, timeout_s))
    return found


def tool_class(annotations: types.ToolAnnotations | None) -> ToolClass:
    """What the annotations say about calling the tool twice; nothing said is the worst."""
    if annotations is None:
        return ToolClass.SIDE_EFFECT
    if annotations.read_only_hint:
        return ToolClass.READ_ONLY
    return ToolClass.IDEMPOTENT if annotations.idempotent_hint else ToolClass.SIDE_EFFECT


def _spec(name: str, tool: types.Tool, timeout_s: float) -> ToolSpec:
    """Never interruptible by itself: over MCP a stop can be asked for, but hardly confirmed."""
    return ToolSpec(
        name=name,
        description=bound(clean(tool.description or tool.title or tool.name), DESCRIPTION_BYTES),
        schema=tool.input_schema,
        tool_class=tool_class(tool.annotations),
        timeout_s=timeout_s,
    )


def _name(entry: str, tool: str, taken: set[str]) -> str:
    """`entry__tool` in legal characters; what had to be bent to fit gets a mark, the same every time."""
    plain = _ILLEGAL.sub("_", f"{entry}__{tool}")
    if len(plain) <= LONGEST_NAME and plain not in taken:
        return plain
    mark = hashlib.sha256(tool.encode(errors="replace")).hexdigest()[:8]
    return f"{plain[: LONGEST_NAME - 9]}_{mark}"

"""How the built-in tools describe themselves. All of them only read, and may be stopped at any time."""

from __future__ import annotations

from core.history import Json
from core.tools import ToolClass, ToolSpec


def reader(
    name: str, timeout_s: float, description: str, required: list[str], /, **properties: Json
) -> ToolSpec:
    """A read-only, interruptible tool that takes these properties and no others."""
    return ToolSpec(
        name=name,
        description=description,
        schema={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        tool_class=ToolClass.READ_ONLY,
        interruptible=True,
        timeout_s=timeout_s,
    )

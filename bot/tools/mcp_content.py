"""What an MCP tool answered, as text for the model and pictures for the thread.

Content kinds: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result.
"""

from __future__ import annotations

import base64
import binascii
import json

import mcp_types as types

from bot.tools.provider import ToolOutput
from core.tools import Chart

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def output(title: str, result: types.CallToolResult) -> ToolOutput:
    """The answer in our form; `title` names its pictures."""
    lines: list[str] = []
    charts: list[Chart] = []
    for block in result.content:
        if isinstance(block, types.ImageContent) and (png := _png(block)) is not None:
            charts.append(Chart(title, png))
            lines.append(f"[a picture for the people in the thread: {title}]")
        else:
            lines.append(_text(block))
    if result.structured_content is not None and not _is_told(result.structured_content, lines):
        lines.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = "\n".join(line for line in lines if line)
    return ToolOutput(text or "(the tool answered with nothing)", bool(result.is_error), charts=tuple(charts))


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent():
            return f"[a picture of type {block.mime_type}, which cannot be shown]"
        case types.AudioContent():
            return f"[a sound of type {block.mime_type}, which cannot be played]"
        case types.ResourceLink():
            return f"[resource {block.name}: {block.uri}]" + (
                f" {block.description}" if block.description else ""
            )
        case types.EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        return f"[resource {resource.uri}]\n{resource.text}"
    size = len(resource.blob) * 3 // 4
    return f"[resource {resource.uri}: about {size} bytes of type {resource.mime_type or 'unknown'}]"


def _png(block: types.ImageContent) -> bytes | None:
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if data.startswith(PNG_SIGNATURE) else None


def _is_told(structure: object, lines: list[str]) -> bool:
    """Whether a text block holds the structure already, as the specification asks servers to do."""
    for line in lines:
        try:
            if json.loads(line) == structure:
                return True
        except ValueError:
            continue
    return False

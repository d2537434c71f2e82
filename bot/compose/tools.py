"""The tools of a process, as its settings ask for them."""

from __future__ import annotations

from bot.settings import Settings
from bot.tools.prometheus import PrometheusProvider
from bot.tools.provider import Provider
from bot.tools.registry import ToolBox
from core.redaction import Redactor


def build_tools(settings: Settings, redactor: Redactor) -> ToolBox:
    """All providers that are configured, in a stable order."""
    sections = settings.file
    providers: list[Provider] = mcp_providers(settings, redactor)
    if sections.tools.prometheus.url:
        providers.append(PrometheusProvider(sections.tools.prometheus.url))
    return ToolBox(providers, redactor, sections.tools.overrides())


def mcp_providers(settings: Settings, redactor: Redactor) -> list[Provider]:
    """One provider for each configured tool server."""
    if not settings.file.mcp:
        return []
    from bot.tools.mcp import McpProvider  # noqa: PLC0415 - its SDK loads slowly, and few need it
    from bot.tools.mcp_transport import McpEntry  # noqa: PLC0415 - likewise

    return [McpProvider(McpEntry(**entry.model_dump()), redactor) for entry in settings.file.mcp]

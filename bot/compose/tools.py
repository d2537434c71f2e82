"""The tools of a process, as its settings ask for them."""

from __future__ import annotations

from bot.settings import Settings
from bot.tools.deploys import DeploysProvider
from bot.tools.logs import LogsProvider
from bot.tools.prometheus import PrometheusProvider
from bot.tools.provider import Provider
from bot.tools.registry import ToolBox
from bot.tools.runbooks import RunbooksProvider
from core.redaction import Redactor


def build_tools(settings: Settings, redactor: Redactor) -> ToolBox:
    """All providers that are configured, in a stable order."""
    providers = [*mcp_providers(settings, redactor), *built_in_providers(settings)]
    return ToolBox(providers, redactor, settings.file.tools.overrides())


def built_in_providers(settings: Settings) -> list[Provider]:
    """The built-in tools whose section says what to look at."""
    tools = settings.file.tools
    found: list[Provider] = []
    if tools.prometheus.url:
        found.append(PrometheusProvider(tools.prometheus.url))
    if tools.logs.url:
        found.append(LogsProvider(tools.logs.url, tools.logs.org))
    if tools.http.hosts:
        from bot.tools.http_probe import HttpProvider  # noqa: PLC0415 - reading certificates loads slowly

        found.append(HttpProvider(tools.http.hosts, tools.http.networks))
    if tools.runbooks.folder:
        found.append(RunbooksProvider(settings.path(tools.runbooks.folder)))
    if tools.deploys.repository:
        found.append(DeploysProvider(settings.path(tools.deploys.repository)))
    return found


def mcp_providers(settings: Settings, redactor: Redactor) -> list[Provider]:
    """One provider for each configured tool server."""
    if not settings.file.mcp:
        return []
    from bot.tools.mcp import McpProvider  # noqa: PLC0415 - its SDK loads slowly, and few need it
    from bot.tools.mcp_transport import McpEntry  # noqa: PLC0415 - likewise

    return [McpProvider(McpEntry(**entry.model_dump()), redactor) for entry in settings.file.mcp]

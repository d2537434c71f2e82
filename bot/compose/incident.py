"""The bundled incident as this process's world: served below /incident/, and where the tools look."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from bot.console.records_port import Opening
from bot.incident import RUNBOOKS
from bot.incident.app import incident_app
from bot.incident.deploys import make_repository
from bot.incident.incident import Incident
from bot.incident.scenarios import SCENARIOS
from bot.settings import Settings
from bot.settings.tool_sections import (
    DeploysSection,
    HttpSection,
    LogsSection,
    PrometheusSection,
    RunbooksSection,
    ToolSections,
)

MOUNTED_AT = "/incident"
DRAWN = ""
QUESTION = "what is going on here, and why?"


class BundledIncident:
    """One incident, kept beside the database."""

    def __init__(self, folder: Path, incident: Incident) -> None:
        self._story = folder / "incident.json"
        self._deploys = folder / "incident-deploys"
        self._incident = incident
        self._choosing = asyncio.Lock()

    @classmethod
    def open(cls, folder: Path) -> BundledIncident:
        """The incident that was told last, else a new one."""
        kept = Incident.load(folder / "incident.json")
        bundled = cls(folder, kept or Incident("nothing_wrong", seed=1, began_at=0.0))
        if kept is None:
            bundled._choose("nothing_wrong")
        return bundled

    @property
    def choices(self) -> Sequence[tuple[str, str]]:
        """Draw one, or pick one by its name."""
        named = [(name, name.replace("_", " ")) for name in SCENARIOS]
        return [(DRAWN, "surprise me"), *named]

    async def begin(self, choice: str) -> Opening:
        """Tell another story from now on."""
        async with self._choosing:
            await asyncio.to_thread(self._choose, choice if choice in SCENARIOS else None)
        return Opening(f"**Firing:** {self._incident.alert}", QUESTION)

    def told(self) -> str:
        """The name of the fault."""
        return self._incident.scenario.replace("_", " ")

    def _choose(self, name: str | None) -> None:
        self._incident.choose(name)
        make_repository(self._incident.story, self._deploys)
        self._incident.save(self._story)

    def add_routes(self, app: web.Application) -> None:
        """Serve it below its own address."""
        app.add_subapp(MOUNTED_AT, incident_app(self._incident))

    def as_world(self, settings: Settings, port: int) -> Settings:
        """The settings with the built-in tools pointed at the incident."""
        here = f"127.0.0.1:{port}"
        sections = settings.file.tools
        tools = sections.model_copy(
            update={
                "prometheus": PrometheusSection(url=f"http://{here}{MOUNTED_AT}/prometheus"),
                "logs": LogsSection(url=f"http://{here}{MOUNTED_AT}"),
                "http": HttpSection(hosts=(here,)),
                "runbooks": RunbooksSection(folder=str(RUNBOOKS)),
                "deploys": DeploysSection(repository=str(self._deploys)),
            }
        )
        return replace(settings, file=settings.file.model_copy(update={"tools": tools}))


def has_own_world(settings: Settings) -> bool:
    """Whether the configuration names something to look at; then that is what is looked at."""
    tools: ToolSections = settings.file.tools
    named = (
        tools.prometheus.url,
        tools.logs.url,
        tools.http.hosts,
        tools.runbooks.folder,
        tools.deploys.repository,
    )
    return bool(settings.file.mcp) or any(named)

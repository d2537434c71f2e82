"""The sections `[tools.…]`: what the built-in tools look at, and overrides for any tool."""

from __future__ import annotations

from pydantic import ConfigDict, Field, model_validator

from bot.settings.values import HttpUrl, Name, Seconds, Section
from core.tools import ToolClass, ToolOverride


class ToolSection(Section):
    """Overrides for one tool, built in or from a tool server."""

    tool_class: ToolClass | None = Field(
        default=None, alias="class", strict=False, description="What repeating a call would do to the world."
    )
    interruptible: bool | None = Field(
        default=None, description="Whether a steer or stop may cut its calls short; read_only tools only."
    )
    timeout_s: Seconds | None = Field(
        default=None, description="A call without an answer for so long has failed."
    )
    max_bytes: int | None = Field(
        default=None, ge=256, description="Longer results are cut to so many UTF-8 bytes."
    )

    @model_validator(mode="after")
    def _only_readers_are_interruptible(self) -> ToolSection:
        if self.interruptible and self.tool_class not in {None, ToolClass.READ_ONLY}:
            raise ValueError(f'interruptible = true needs class = "read_only", not "{self.tool_class}"')
        return self

    def override(self) -> ToolOverride:
        """The section in the core's terms."""
        return ToolOverride(self.tool_class, self.interruptible, self.timeout_s, self.max_bytes)


class PrometheusSection(Section):
    """The Prometheus to ask."""

    url: HttpUrl | None = Field(
        default=None, description="Base URL of a Prometheus; without it its tools are off."
    )


class LogsSection(Section):
    """The logs to search: anything that speaks Loki's HTTP API."""

    url: HttpUrl | None = Field(default=None, description="Base URL of a Loki; without it its tools are off.")
    org: Name | None = Field(default=None, description="Tenant, sent as `X-Scope-OrgID`.")


class RunbooksSection(Section):
    """A folder of Markdown to search."""

    folder: Name | None = Field(
        default=None,
        description="The folder, from the configuration file's own; without it its tools are off.",
    )


class DeploysSection(Section):
    """The Git repository whose history tells what was deployed."""

    repository: Name | None = Field(
        default=None,
        description="Its folder, from the configuration file's own; without it its tools are off.",
    )


class ToolSections(Section):
    """The built-in tools' own sections, and `[tools.NAME]` for any tool."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, hide_input_in_errors=True)
    __pydantic_extra__: dict[str, ToolSection] = Field(init=False)

    prometheus: PrometheusSection = PrometheusSection()
    logs: LogsSection = LogsSection()
    runbooks: RunbooksSection = RunbooksSection()
    deploys: DeploysSection = DeploysSection()

    def overrides(self) -> dict[str, ToolOverride]:
        """The overrides by tool name."""
        return {name: section.override() for name, section in (self.__pydantic_extra__ or {}).items()}

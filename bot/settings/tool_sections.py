"""The sections `[tools.…]`: what the built-in tools look at, and overrides for any tool."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

from pydantic import ConfigDict, Field, field_validator, model_validator

from bot.settings.values import HttpUrl, Name, Seconds, Section
from core.tools import ToolClass, ToolOverride

_HOST = re.compile(
    r"([a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE
)
LARGEST_PORT = 65_535


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


class HttpSection(Section):
    """The hosts that may be probed over HTTP."""

    hosts: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="`host` (ports 80 and 443) or `host:port` that may be probed; none: off.",
    )
    networks: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Private networks like `10.0.0.0/8` in which a listed name may lie. A private address "
        "that is listed itself, as `10.0.0.5:8080`, needs none.",
    )

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            found = _HOST.fullmatch(host)
            if found is None or int(found[2] or 1) > LARGEST_PORT or not _is_host(found[1]):
                raise ValueError(
                    f'holds "{host}", which is no bare host such as status.example.com or 10.0.0.5:8080'
                )
        return hosts

    @field_validator("networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            try:
                ip_network(network)
            except ValueError:
                raise ValueError(f'holds "{network}", which is no network such as 10.0.0.0/8') from None
        return networks


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
    http: HttpSection = HttpSection()
    runbooks: RunbooksSection = RunbooksSection()
    deploys: DeploysSection = DeploysSection()

    def overrides(self) -> dict[str, ToolOverride]:
        """The overrides by tool name."""
        return {name: section.override() for name, section in (self.__pydantic_extra__ or {}).items()}


def _is_host(text: str) -> bool:
    """Whether it is a name, or an address in its ordinary form: `10.5` and `0x7f.1` are neither."""
    if not text.startswith("[") and not re.search(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$", text, re.IGNORECASE):
        return ".." not in text
    try:
        ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True

"""The sections of `watchkeeper.toml` with their defaults (contract §6)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, field_validator, model_validator

from core.arrivals import Addressed, AuthorRole, Marker, Source
from core.policy import Effect, Rule, contradiction
from core.tools import ToolClass, ToolOverride

T = TypeVar("T")


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", value):
        raise ValueError("should be a URL such as https://host:9090")
    return value


Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrNone: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Word: TypeAlias = Annotated[T, Strict(False)]  # one of an enum's words
OneOrMany: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_one_or_many), Field(strict=False, min_length=1)
]
HttpUrl: TypeAlias = Annotated[str, BeforeValidator(lambda v: _http_url(v) if isinstance(v, str) else v)]


class Section(BaseModel):
    """A table of the file: frozen, without unknown keys, without silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class ModelSection(Section):
    """Which language model, and how patient we are with it."""

    provider: Literal["anthropic"] = Field(default="anthropic", description="Whose API is spoken.")
    name: Name = Field(default="claude-sonnet-5-5", description="The model, in its provider's words.")
    idle_timeout_s: Seconds = Field(
        default=60, description="No byte from the model for so long: the request has failed."
    )
    retry_for_s: SecondsOrNone = Field(
        default=180, description="Overloads, rate limits and broken streams are retried so long in all."
    )


class WorkerSection(Section):
    """How turns are taken, kept and given back."""

    max_turns: int = Field(default=16, ge=1, description="Turns that one process runs at the same time.")
    lease_s: Seconds = Field(
        default=15, description="A turn whose process was silent for so long is taken over by another."
    )
    poll_s: Seconds = Field(
        default=1, description="The database is looked at so often even if no bell rings."
    )
    gather_s: SecondsOrNone = Field(
        default=1, description="After a cut the next turn waits until the thread was quiet for so long."
    )
    drain_timeout_s: SecondsOrNone = Field(
        default=60,
        description="On SIGTERM, turns whose calls still run are left to their lease after so long.",
    )
    turn_limit_s: Seconds = Field(
        default=3600, description="A turn that is not done after so long has failed."
    )
    resume_within_s: Seconds = Field(
        default=3600, description="Work that lay longer is settled and the thread is told; it is not resumed."
    )


class CardSection(Section):
    """How often the progress card is brought up to date."""

    min_interval_s: SecondsOrNone = Field(
        default=3, description="Progress is shown at most so often; releases go at once."
    )


class ReaperSection(Section):
    """How soon what was lost is found."""

    every_s: Seconds = Field(default=5, description="Lost turns and cards are looked for so often.")
    card_grace_s: SecondsOrNone = Field(
        default=10, description="A card may stay live so long after its turn's settle or its lease's end."
    )


class BudgetSection(Section):
    """Caps on what an analysis may cost. No keys yet."""


class AutomationEntry(Section):
    """An analysis that starts by itself. No keys yet."""


class SlackSection(Section):
    """Who may do what in Slack, and where links may lead."""

    responders: tuple[str, ...] = Field(
        default=(), strict=False, description="Slack user ids (U…) with the role `responder`."
    )
    link_hosts: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Hosts to which links in answers may lead; others are shown as text.",
    )
    rate_factor: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = Field(
        default=1, description="How many times Slack's documented rate limits are used; more only if granted."
    )

    @field_validator("responders")
    @classmethod
    def _are_user_ids(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        for user in ids:
            if not re.fullmatch(r"[UW]\w+", user):
                raise ValueError(f'holds "{user}", which is not a Slack user id such as U012AB3CD')
        return ids

    @field_validator("link_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not re.fullmatch(r"[\w.-]+(:\d+)?", host):
                raise ValueError(f'holds "{host}", which is not a bare host such as grafana.example.com')
        return hosts


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


class ToolSections(Section):
    """`[tools.prometheus]`, and `[tools.NAME]` for any tool."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, hide_input_in_errors=True)
    __pydantic_extra__: dict[str, ToolSection] = Field(init=False)

    prometheus: PrometheusSection = PrometheusSection()

    def overrides(self) -> dict[str, ToolOverride]:
        """The overrides by tool name."""
        return {name: section.override() for name, section in (self.__pydantic_extra__ or {}).items()}


class McpEntry(Section):
    """A tool server: started by us and spoken to over stdio (`command`), or reached over HTTP (`url`)."""

    name: str = Field(description="Its tools appear to the model as NAME__TOOL.")
    command: tuple[str, ...] | None = Field(
        default=None,
        strict=False,
        min_length=1,
        description="Program and arguments of a server that speaks stdio.",
    )
    url: HttpUrl | None = Field(default=None, description="Address of a server that speaks streamable HTTP.")
    timeout_s: Seconds = Field(
        default=30, description="Limit for connecting, and for a call unless its tool has one of its own."
    )
    env: dict[str, str] = Field(default={}, description="Environment variables for `command`.")

    @field_validator("name")
    @classmethod
    def _fits_into_tool_names(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name) or "__" in name:
            raise ValueError(f'"{name}" should be 1 to 32 letters, digits, "-" or "_", without "__"')
        return name

    @model_validator(mode="after")
    def _is_reached_in_one_way(self) -> McpEntry:
        if (self.command is None) == (self.url is None):
            raise ValueError('needs exactly one of "command" (stdio) and "url" (streamable HTTP)')
        if self.env and self.command is None:
            raise ValueError('"env" is for servers with "command"; one with "url" has its own environment')
        return self


class PolicyEntry(Section):
    """A rule in front of the built-in ones (contract §7). An absent key matches anything."""

    source: OneOrMany[Word[Source]] = Field(default=(), description="What the message is.")
    role: OneOrMany[Word[AuthorRole]] = Field(default=(), description="Who wrote it.")
    marker: OneOrMany[Word[Marker]] = Field(
        default=(), description="Whether it asks to interrupt or to wait."
    )
    addressed: OneOrMany[Word[Addressed]] = Field(default=(), description="Whom it speaks to.")
    running: OneOrMany[bool] = Field(default=(), description="Whether a turn runs.")
    channel: OneOrMany[Name] = Field(
        default=(), description="The channel's id (Slack: C…), or a pattern with `*`, `?` and `[…]`."
    )
    effect: Effect = Field(strict=False, description="What the message does.")
    reason: Name = Field(
        default="The configuration of this installation says so.",
        description="Shown to a person who is refused.",
    )

    @model_validator(mode="after")
    def _can_be_honoured(self) -> PolicyEntry:
        if fault := contradiction(self.rule()):
            raise ValueError(fault)
        return self

    def rule(self) -> Rule:
        """The entry as a rule of the table; its name is given by its place there."""
        running = set(self.running)
        return Rule(
            name="configured",
            sources=frozenset(self.source),
            roles=frozenset(self.role),
            markers=frozenset(self.marker),
            addressed=frozenset(self.addressed),
            running=running.pop() if len(running) == 1 else None,
            effect=self.effect,
            reason=self.reason,
            channels=self.channel,
        )


class Configuration(Section):
    """The whole file."""

    model: ModelSection = ModelSection()
    worker: WorkerSection = WorkerSection()
    card: CardSection = CardSection()
    reaper: ReaperSection = ReaperSection()
    budget: BudgetSection = BudgetSection()
    slack: SlackSection = SlackSection()
    policy: tuple[PolicyEntry, ...] = Field(default=(), strict=False)
    tools: ToolSections = ToolSections()
    mcp: tuple[McpEntry, ...] = Field(default=(), strict=False)
    automation: tuple[AutomationEntry, ...] = Field(default=(), strict=False)

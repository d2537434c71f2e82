"""The sections of `watchkeeper.toml` with their defaults (contract §6)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from bot.settings.tool_sections import ToolSections
from bot.settings.values import HttpUrl, Name, OneOrMany, Seconds, SecondsOrNone, Section, Word
from core.arrivals import Addressed, AuthorRole, Marker, Source
from core.policy import Effect, Rule, contradiction


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

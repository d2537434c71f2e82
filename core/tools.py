"""What the rules know of a tool: its class, its limits, and every way in which a call can come back.

A tool's class decides what may be done twice: see `core.resume`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from core.history import Json


class ToolClass(StrEnum):
    """What repeating a call would do to the world."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    SIDE_EFFECT = "side_effect"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model and the runner know it.

    `timeout_s` is in seconds, `max_bytes` in UTF-8 bytes of result text; `interruptible` only if read-only.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    tool_class: ToolClass = ToolClass.SIDE_EFFECT
    interruptible: bool = False
    timeout_s: float = 30.0
    max_bytes: int = 65_536


def overridden(spec: ToolSpec, override: ToolOverride) -> ToolSpec:
    """The spec with a `[tools.NAME]` section applied; ValueError if a writing tool becomes interruptible."""
    tool_class = override.tool_class or spec.tool_class
    interruptible = spec.interruptible if override.interruptible is None else override.interruptible
    if interruptible and tool_class is not ToolClass.READ_ONLY:
        if override.interruptible:
            raise ValueError(
                f"tools.{spec.name}: only a read_only tool may be interruptible, this one is {tool_class}"
            )
        interruptible = False
    return replace(
        spec,
        tool_class=tool_class,
        interruptible=interruptible,
        timeout_s=override.timeout_s if override.timeout_s is not None else spec.timeout_s,
        max_bytes=override.max_bytes if override.max_bytes is not None else spec.max_bytes,
    )


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """What a `[tools.NAME]` section of the configuration changes; None leaves the tool's own value."""

    tool_class: ToolClass | None = None
    interruptible: bool | None = None
    timeout_s: float | None = None
    max_bytes: int | None = None


class Outcome(StrEnum):
    """How a call came back. Each member is a different truth; none says more than is known."""

    OK = "ok"
    ERROR = "error"
    STOPPED = "stopped"  # the tool confirmed that it stopped
    ASKED_TO_STOP = "asked_to_stop"  # it did not confirm
    TIMED_OUT = "timed_out"
    NOT_EXECUTED = "not_executed"
    UNKNOWN = "unknown"  # a worker was lost while it ran


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture for the people in the thread; the model sees only `title`."""

    title: str
    png: bytes


@dataclass(frozen=True, slots=True)
class CallResult:
    """What one call came back with, redacted and bounded; the words are for the model.

    `query` and `time_range` say what was looked at, for the evidence lines of an answer ("" where none).
    """

    outcome: Outcome
    text: str
    query: str = ""
    time_range: str = ""
    charts: tuple[Chart, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the model is told that the call did not do what it was asked to."""
        return self.outcome is not Outcome.OK


def stopped(seconds: float, so_far: str) -> CallResult:
    """The tool confirmed that it stopped."""
    return CallResult(Outcome.STOPPED, f"stopped after {seconds:.1f} s{_partial(so_far)}")


def asked_to_stop(seconds: float, so_far: str) -> CallResult:
    """The tool was asked to stop and did not confirm it."""
    return CallResult(
        Outcome.ASKED_TO_STOP, f"asked to stop after {seconds:.1f} s, may have gone on{_partial(so_far)}"
    )


def timed_out(limit_s: float, so_far: str) -> CallResult:
    """The tool gave no answer within its time limit."""
    return CallResult(
        Outcome.TIMED_OUT, f"no answer within {limit_s:g} s, may still be running{_partial(so_far)}"
    )


def not_executed(why: str) -> CallResult:
    """The call was never sent."""
    return CallResult(Outcome.NOT_EXECUTED, f"not executed: {why}")


def outcome_unknown() -> CallResult:
    """The worker was lost between marking the call as started and recording its result."""
    return CallResult(Outcome.UNKNOWN, "outcome unknown: the worker was lost while this call ran")


def _partial(so_far: str) -> str:
    return f"\nWhat it had so far:\n{so_far}" if so_far else ""


ToolSpecs: TypeAlias = tuple[ToolSpec, ...]

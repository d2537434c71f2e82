"""One log line: when, from which stream, its level, what it says, and the pattern of that.

A pattern is the message with what differs from line to line masked: numbers, ids, addresses, times.
Every expression is linear on a line that is cut to `LONGEST` characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

LONGEST = 2_000  # characters of a line that are looked at
LEVELS = ("fatal", "error", "warn", "info", "debug", "trace")  # most serious first
UNKNOWN = "no level"

_LEVEL_LABELS = ("level", "detected_level", "severity", "lvl", "log_level")
_MESSAGE_KEYS = ("msg", "message", "error", "err", "event", "log")
_SAME: Mapping[str, str] = {
    "critical": "fatal", "crit": "fatal", "emerg": "fatal", "emergency": "fatal", "panic": "fatal",
    "alert": "fatal", "err": "error", "eror": "error", "severe": "error", "warning": "warn",
    "information": "info", "notice": "info", "dbug": "debug", "verbose": "trace",
}  # fmt: skip
_WORD = re.compile(r"\b(FATAL|CRITICAL|PANIC|ERROR|ERR|WARN|WARNING|INFO|NOTICE|DEBUG|TRACE)\b")
_LOGFMT_LEVEL = re.compile(r"\b(?:level|lvl|severity)=\"?([A-Za-z]{3,12})")
_LOGFMT_MESSAGE = re.compile(
    r"\b(?:msg|message|error|err|event)=(?:\"((?:[^\"\\]|\\.){1,1000})\"|([^\s\"]{1,400}))"
)

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<ip>"),
    (re.compile(r"\b(?=[0-9a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{6,40}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b0x[0-9a-f]{1,32}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{16,64}\b"), "<id>"),
    (re.compile(r"(?<![A-Za-z])[-+]?\d+(?:\.\d+)?"), "<n>"),
    (re.compile(r"\d+"), "<n>"),
)


@dataclass(frozen=True)
class Line:
    """A line of one stream; `at` in epoch seconds."""

    at: float
    labels: Mapping[str, str]
    text: str

    @cached_property
    def level(self) -> str:
        """From the labels, else from the line: JSON, logfmt, or a word in capitals near its beginning."""
        for label in _LEVEL_LABELS:
            if name := self.labels.get(label):
                return _level(name)
        for key in _LEVEL_LABELS:
            if isinstance(found := self._fields.get(key), str):
                return _level(found)
        match = _LOGFMT_LEVEL.search(self._cut) or _WORD.search(self._cut[:200])
        return _level(match[1]) if match else UNKNOWN

    @cached_property
    def message(self) -> str:
        """What it says, without the fields around it where they can be told apart."""
        for key in _MESSAGE_KEYS:
            if isinstance(found := self._fields.get(key), str) and found.strip():
                return found
        match = _LOGFMT_MESSAGE.search(self._cut)
        return (match[1] or match[2]) if match else self._cut

    @cached_property
    def pattern(self) -> str:
        """The message with what differs masked."""
        text = " ".join(self.message[:LONGEST].split())
        for mask, name in _MASKS:
            text = mask.sub(name, text)
        return text[:300]

    @property
    def _cut(self) -> str:
        return self.text[:LONGEST]

    @cached_property
    def _fields(self) -> Mapping[str, object]:
        """The fields of a line that is a JSON object."""
        if not self.text.lstrip().startswith("{") or len(self.text) > 16 * LONGEST:
            return {}
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _level(word: str) -> str:
    lower = word.lower()
    return _SAME.get(lower, lower if lower in LEVELS else UNKNOWN)

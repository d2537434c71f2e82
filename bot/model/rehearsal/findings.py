"""From the words of a tool's result to facts. Whatever does not read as one is left out, never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.history import Json

_UNITS = {"M": 1e6, "G": 1e9, "T": 1e12}
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?[MGT]?|inf|nan)"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_NAMED = r'^(?P<metric>[\w:]*)\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}'
_SERIES = re.compile(_NAMED + r": (?P<told>.+)$", re.MULTILINE)
_SAMPLE = re.compile(
    _NAMED + rf" (?P<values>{_NUMBER}(?: at {_TIME}(?:, {_NUMBER} at {_TIME})*)?)$", re.MULTILINE
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ENDS = re.compile(rf"first ({_NUMBER}), last ({_NUMBER})")
_LOW = re.compile(rf"min ({_NUMBER}) at ({_TIME}), max ({_NUMBER}) at ({_TIME})")
_JUMP = re.compile(rf"biggest jump ({_NUMBER}) → ({_NUMBER}) at ({_TIME})")
_CONSTANT = re.compile(rf"constant ({_NUMBER}) \(")
_POINT = re.compile(rf"({_NUMBER}) at ({_TIME})")
_PATTERN = re.compile(
    rf"^(?P<count>\d+)x (?P<level>[\w ]+), (?P<since>{_TIME}) to (?P<until>{_TIME}): (?P<words>.+)$"
)
_RAW = re.compile(rf"^{_TIME} (\{{.*\}})$", re.MULTILINE)
_ADDED = re.compile(r"^\+(?!\+\+)\s*(\S.*)$", re.MULTILINE)
_SUBJECT = re.compile(rf"^{_TIME} (?:merge|commit) [0-9a-f]+ (?:\([^)]*\) )?(.+)$", re.MULTILINE)
_ALERT = re.compile(r"^(firing|pending) (\w+)\{(.*?)\} since (\S+), value (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Change:
    """One series, then and now; `at` is its biggest step, `before` is None when only now is known."""

    labels: Mapping[str, str]
    before: float | None
    now: float
    high: float
    at: str = ""

    def grew(self, factor: float, by: float) -> bool:
        """Whether it is now so many times what it was, and more by at least so much."""
        return self.before is not None and self.now >= self.before * factor and self.rise >= by

    @property
    def rise(self) -> float:
        """How much more it is now."""
        return self.now - self.before if self.before is not None else 0.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """Log lines that say the same; `example` holds the fields of one of them, where they can be read."""

    count: int
    level: str
    since: str
    until: str
    words: str
    example: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as Prometheus tells it."""

    name: str
    state: str
    since: str
    labels: Mapping[str, str]


def number(text: str) -> float:
    """A value as the tools write it, large ones with a unit."""
    return float(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else float(text)


def changes(text: str) -> list[Change]:
    """The series of a range query, or the samples of an instant one."""
    told = [change for found in _SERIES.finditer(text) if (change := _told(found)) is not None]
    return told or [_sampled(found) for found in _SAMPLE.finditer(text)]


def patterns(text: str) -> list[Pattern]:
    """The message patterns of a log query, each with the fields of its example."""
    found: list[Pattern] = []
    lines = text.split("\n")
    raw = [_fields(line) for line in _RAW.findall(text)]
    for at, line in enumerate(lines):
        if (match := _PATTERN.match(line)) is None:
            continue
        behind = lines[at + 1] if at + 1 < len(lines) else ""
        example = _fields(behind.partition("such as: ")[2])
        words = match["words"]
        example = example or next((each for each in raw if each.get("msg") == words), {})
        found.append(
            Pattern(int(match["count"]), match["level"], match["since"], match["until"], words, example)
        )
    return found


def diff(text: str) -> tuple[str, list[str]]:
    """Of one deploy: who did what, and the lines that it added."""
    subject = _SUBJECT.search(text)
    return (subject[1] if subject else "", _ADDED.findall(text))


def alerts(text: str) -> list[Alert]:
    """The alerts that are pending or firing."""
    return [
        Alert(name, state, since, _labels(labels)) for state, name, labels, since, _ in _ALERT.findall(text)
    ]


def _told(found: re.Match[str]) -> Change | None:
    labels, told = _labels(found["labels"]), found["told"]
    if constant := _CONSTANT.match(told):
        value = number(constant[1])
        return Change(labels, value, value, value)
    ends, low, jump = _ENDS.search(told), _LOW.search(told), _JUMP.search(told)
    if ends is None:
        return None
    first, last = number(ends[1]), number(ends[2])
    return Change(labels, first, last, number(low[3]) if low else max(first, last), jump[3] if jump else "")


def _sampled(found: re.Match[str]) -> Change:
    labels, points = _labels(found["labels"]), _POINT.findall(found["values"])
    if not points:
        value = number(found["values"])
        return Change(labels, None, value, value)
    values = [number(value) for value, _ in points]
    steps = [
        (after - before, at) for before, after, (_, at) in zip(values, values[1:], points[1:], strict=False)
    ]
    return Change(labels, values[0], values[-1], max(values), max(steps)[1] if steps else "")


def _labels(text: str) -> dict[str, str]:
    return dict(_LABEL.findall(text))


def _fields(text: str) -> Mapping[str, Json]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

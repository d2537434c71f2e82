"""Deploys as a tool lists them: when, which service, which version, which commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.model.rehearsal.findings import changes

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)"
_LINE = re.compile(rf"^(?P<at>{_TIME}) (?P<words>.*)(?:\n {{2,}}(?P<files>\S.*))?$", re.MULTILINE)
_COMMIT = re.compile(r"\b(?=[0-9a-f]{0,39}\d)[0-9a-f]{7,40}\b")
_TAG = re.compile(r"\b([a-z][\w-]*)/v?(\d[\w.-]*\w)")
_FOLDER = re.compile(r"\b[A-Z] ([\w.-]+)/")
_MOMENT = re.compile(rf"^at ({_TIME}):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Deploy:
    """One deploy; what the list did not say is ""."""

    at: float
    service: str
    version: str
    commit: str

    @property
    def time(self) -> str:
        """When, as tools write it."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def name(self) -> str:
        """Service and version, or what is known of them."""
        return f"{self.service} {self.version or self.commit[:12]}".strip()


def deploys(text: str) -> list[Deploy]:
    """Each commit with its time once, the newest first; or, of a query, how long each service has run."""
    found: dict[str, Deploy] = {}
    for line in _LINE.finditer(text):
        commit, tag = _COMMIT.search(line["words"]), _TAG.search(line["words"])
        if commit is None:
            continue
        folder = _FOLDER.search(line["files"] or "")
        service = tag[1] if tag else folder[1] if folder else ""
        known = found.get(commit[0][:7])
        if known is None or not known.version:
            version = tag[2] if tag else ""
            found[commit[0][:7]] = Deploy(seconds(line["at"]), service, version, commit[0])
    return sorted(found.values() or _ages(text), key=lambda each: -each.at)


def seconds(time: str) -> float:
    """Epoch seconds of a time as tools write it; 0 for none."""
    try:
        at = datetime.fromisoformat(time.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _ages(text: str) -> list[Deploy]:
    moment = _MOMENT.search(text)
    if moment is None:
        return []
    now = seconds(moment[1])
    return [Deploy(now - each.now, each.labels.get("service", ""), "", "") for each in changes(text)]

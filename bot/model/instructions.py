"""The system texts, by name: each with its version in its first line and a hash of its words.

The hash is booked with a turn, so that it can be told later which words led it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_FIRST_LINE = re.compile(r"<!-- (?P<name>[a-z_]+), version (?P<version>\d+) -->")


@dataclass(frozen=True, slots=True)
class Instructions:
    """A system text as the model gets it, without its version line."""

    name: str
    version: int
    text: str
    digest: str


@cache
def instructions(name: str = "investigator") -> Instructions:
    """The system text of this name; raises FileNotFoundError or ValueError, which are faults of ours."""
    # Beside this file, in a folder of the same name.
    whole = files("bot.model").joinpath("instructions", f"{name}.md").read_text(encoding="utf-8")
    first, _, text = whole.partition("\n")
    head = _FIRST_LINE.fullmatch(first)
    if head is None or head["name"] != name:
        raise ValueError(f"the first line of {name}.md names no version")
    text = text.strip()
    return Instructions(name, int(head["version"]), text, hashlib.sha256(text.encode()).hexdigest()[:12])

"""Reads a Dockerfile as far as ours goes: stages, and of each its instructions in order."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.sources import ROOT


@dataclass(frozen=True)
class Instruction:
    """One instruction: its word in capitals, and what follows it, on one line."""

    word: str
    rest: str


@dataclass(frozen=True)
class Stage:
    """What stands between one FROM and the next."""

    name: str
    instructions: tuple[Instruction, ...]

    def all(self, word: str) -> list[str]:
        """What follows each instruction of this word."""
        return [one.rest for one in self.instructions if one.word == word]

    def last(self, word: str) -> str:
        """What follows the last one of this word: the one that counts."""
        return self.all(word)[-1]

    def command(self, word: str) -> list[str]:
        """An instruction in its exec form. In the shell form a shell would be PID 1, and keep signals."""
        words: list[str] = json.loads(self.last(word))
        return words

    def environment(self, before: dict[str, str]) -> dict[str, str]:
        """The variables of ENV, over those of the image below."""
        found = dict(before)
        for line in self.all("ENV"):
            for pair in shlex.split(line):
                name, _, value = pair.partition("=")
                found[name] = re.sub(r"\$(\w+)", lambda match: found[match[1]], value)
        return found


def stages(path: Path = ROOT / "Dockerfile") -> list[Stage]:
    """The stages of a Dockerfile, first to last."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    found: list[tuple[str, list[Instruction]]] = []
    for line in re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append((rest.rpartition(" AS ")[2], []))
        else:
            found[-1][1].append(Instruction(word, rest.strip()))
    return [Stage(name, tuple(instructions)) for name, instructions in found]

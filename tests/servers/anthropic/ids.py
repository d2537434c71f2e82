"""Ids in the order in which they are given, each new in this server."""

from collections import Counter


class Ids:
    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        self._given[prefix] += 1
        return f"{prefix}{self._given[prefix]:06d}"

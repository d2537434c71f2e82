"""What the model's owner would bill: one entry for each request that began to be answered."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.servers.anthropic.usage import Usage


@dataclass(frozen=True, slots=True)
class Entry:
    request: int
    model: str
    usage: Usage
    finished: bool
    """False when the answer was broken off, by either side; its output is what had been sent."""


def total(entries: Iterable[Entry]) -> Usage:
    usages = [entry.usage for entry in entries]
    return Usage(
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cache_read=sum(usage.cache_read for usage in usages),
        cache_write=sum(usage.cache_write for usage in usages),
        cache_write_1h=sum(usage.cache_write_1h for usage in usages),
    )

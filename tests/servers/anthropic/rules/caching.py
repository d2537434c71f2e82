"""Cache breakpoints: few, never on nothing, the long-lived ones first."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import blocks_of, inside

MAX_BREAKPOINTS = 4


def few_breakpoints(ask: Ask) -> Iterator[Fault]:
    found = len(list(breakpoints(ask))) + bool(ask.body.get("cache_control"))
    if found > MAX_BREAKPOINTS:
        yield Fault(
            "cache_control",
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {found}.",
        )


def no_breakpoint_on_empty_text(ask: Ask) -> Iterator[Fault]:
    for path, block in breakpoints(ask):
        if block.get("type") == "text" and not block.get("text"):
            yield Fault("cache_control", f"{path}.text: cache_control cannot be set for empty text blocks")


def long_lived_breakpoints_come_first(ask: Ask) -> Iterator[Fault]:
    short_seen = False
    for path, block in breakpoints(ask):
        ttl = block["cache_control"].get("ttl", "5m") if isinstance(block["cache_control"], Mapping) else None
        if ttl not in ("5m", "1h"):
            yield Fault("cache_control", f"{path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        if ttl == "1h" and short_seen:
            words = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
            yield Fault("cache_control", f"{path}.cache_control.ttl: {words}")
        short_seen = short_seen or ttl == "5m"


def breakpoints(ask: Ask) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """In the order of the cached prefix: tools, system, messages."""
    places: list[tuple[str, Mapping[str, Any]]] = [(f"tools.{n}", tool) for n, tool in enumerate(ask.tools)]
    system = ask.body.get("system")
    if not isinstance(system, str):
        places += [(f"system.{n}", block) for n, block in enumerate(blocks_of(system))]
    for spot in ask.spots:
        places += [*inside(spot), (spot.path, spot.block)]
    yield from ((path, block) for path, block in places if block.get("cache_control"))

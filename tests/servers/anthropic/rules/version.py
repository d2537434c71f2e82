"""What API version 2026-10-21, which the SDK sends since its 2.0, no longer takes.

Source: the provider's guide "Migrating to API version 2026-10-21". It gives no error texts: these are ours.
"""

from collections.abc import Iterator

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import blocks_of

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
SINCE = "2026-10-21"


def sampling_parameters_are_gone(ask: Ask) -> Iterator[Fault]:
    """Even at their defaults."""
    for key in ("temperature", "top_p", "top_k"):
        if ask.version >= SINCE and key in ask.body:
            yield Fault("sampling", f"{key}: Extra inputs are not permitted")


def assistants_send_no_documents(ask: Ask) -> Iterator[Fault]:
    for spot in ask.spots:
        if ask.version >= SINCE and spot.role == "assistant" and spot.type == "document":
            yield Fault("wrong_role", f"{spot.path}: `document` blocks can only be in `user` messages")


def users_cite_nothing(ask: Ask) -> Iterator[Fault]:
    """Neither in a text block nor in the texts of a search result."""
    for spot in ask.spots:
        within = blocks_of(spot["content"]) if spot.type == "search_result" else [spot.block]
        cites = any(block.get("type") == "text" and block.get("citations") for block in within)
        if ask.version >= SINCE and spot.role == "user" and cites:
            yield Fault(
                "extra_field", f"{spot.path}.text.citations: citations must be empty in `user` messages"
            )

"""Emptiness: what may be empty, and what may not."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import blocks_of, inside


def messages_are_not_empty(ask: Ask) -> Iterator[Fault]:
    last = len(ask.messages) - 1
    for number, message in enumerate(ask.messages):
        final_assistant = number == last and message["role"] == "assistant"
        if not message["content"] and not final_assistant:
            yield Fault(
                "empty_message",
                f"messages.{number}: all messages must have non-empty content "
                "except for the optional final assistant message",
            )


def texts_are_not_empty(ask: Ask) -> Iterator[Fault]:
    for where, block in texts(ask):
        if block.get("text") == "":
            yield Fault("empty_text", f"{where}: text content blocks must be non-empty")


def texts_are_not_blank(ask: Ask) -> Iterator[Fault]:
    for where, block in texts(ask):
        if block.get("text") and not str(block["text"]).strip():
            yield Fault("whitespace_text", f"{where}: text content blocks must contain non-whitespace text")


def error_results_say_something(ask: Ask) -> Iterator[Fault]:
    for spot in ask.spots:
        if spot.type == "tool_result" and spot["is_error"] is True and not says_something(spot["content"]):
            yield Fault(
                "empty_error_result",
                f"{spot.path}.tool_result: content cannot be empty if `is_error` is true",
            )


def says_something(content: Any) -> bool:
    return any(b.get("type") != "text" or str(b.get("text", "")).strip() for b in blocks_of(content))


def no_nul(ask: Ask) -> Iterator[Fault]:
    if ask.context.refuse_nul and any("\0" in text for text in strings_in(ask.messages)):
        yield Fault(
            "nul_byte", "messages: text must not contain NUL (refused by this test server, see Context)"
        )


def texts(ask: Ask) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(ask.body.get("system"), str):
        yield from (("system", block) for block in blocks_of(ask.body.get("system")))
    for spot in ask.spots:
        if spot.type == "text":
            yield "messages", spot.block
        yield from (("messages", block) for _, block in inside(spot) if block.get("type") == "text")


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)

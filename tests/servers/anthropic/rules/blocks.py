"""The schema of content blocks: which keys each type takes, and what ids, names and inputs look like."""

import re
from collections.abc import Iterator, Mapping

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import Block, inside

ID_PATTERN = re.compile(r"^[a-zA-Z0-9_-]+$", re.ASCII)

KEYS: Mapping[str, frozenset[str]] = {
    kind: frozenset(keys.split()) | {"type"}
    for kind, keys in {
        "text": "text cache_control citations",
        "image": "source cache_control transformations",
        "document": "source cache_control citations context title",
        "search_result": "content source title cache_control citations",
        "thinking": "thinking signature",
        "redacted_thinking": "data",
        "tool_use": "id name input cache_control caller toolset_name",
        "tool_result": "tool_use_id content is_error cache_control toolset_name",
        "tool_reference": "tool_name cache_control",
        "server_tool_use": "id name input cache_control caller",
        "web_search_tool_result": "tool_use_id content cache_control caller",
        "web_fetch_tool_result": "tool_use_id content cache_control caller",
        "code_execution_tool_result": "tool_use_id content cache_control",
        "bash_code_execution_tool_result": "tool_use_id content cache_control",
        "text_editor_code_execution_tool_result": "tool_use_id content cache_control",
        "tool_search_tool_result": "tool_use_id content cache_control",
        "container_upload": "file_id cache_control",
    }.items()
}

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source",),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "server_tool_use": ("id", "name", "input"),
}

IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})


def block_types_are_known(ask: Ask) -> Iterator[Fault]:
    """Beta results, and what the model itself sent, pass."""
    for spot in ask.spots:
        known = spot.type in KEYS or spot.type.endswith(("_tool_result", "_tool_use"))
        if not known and spot.type not in ask.memory.types:
            yield Fault("unknown_block", unknown_tag(spot.path, spot.type))
        for path, block in inside(spot):
            if str(block.get("type")) not in IN_RESULTS:
                yield Fault("unknown_block", unknown_tag(path, str(block.get("type"))))


def unknown_tag(path: str, found: str) -> str:
    return f"{path}: Input tag '{found}' found using 'type' does not match any of the expected tags"


def blocks_carry_no_extra_keys(ask: Ask) -> Iterator[Fault]:
    for path, block in every_block(ask):
        kind = str(block.get("type"))
        for key in block:
            if kind in KEYS and key not in KEYS[kind]:
                yield Fault("extra_field", f"{path}.{kind}.{key}: Extra inputs are not permitted")


def blocks_are_complete(ask: Ask) -> Iterator[Fault]:
    for path, block in every_block(ask):
        kind = str(block.get("type"))
        for key in REQUIRED.get(kind, ()):
            if key not in block:
                yield Fault("missing_field", f"{path}.{kind}.{key}: Field required")
        if kind == "text" and not isinstance(block.get("text", ""), str):
            yield Fault("bad_text", f"{path}.text.text: Input should be a valid string")
        if kind in ("image", "document") and not isinstance(block.get("source", {}), Mapping):
            yield Fault("bad_source", f"{path}.{kind}.source: Input should be an object")
        if kind == "tool_use" and not isinstance(block.get("caller", {}), Mapping):
            yield Fault("bad_caller", f"{path}.tool_use.caller: Input should be an object")
        if kind == "tool_result" and not isinstance(block.get("content", ""), str | list):
            yield Fault("bad_content", f"{path}.tool_result.content: Input should be a valid list")


def thinking_is_complete(ask: Ask) -> Iterator[Fault]:
    """A signed block with empty text is fine, but both keys must be there."""
    for spot in ask.spots:
        if spot.type == "thinking":
            if "thinking" not in spot.block:
                yield Fault("thinking_field", f"{spot.path}.thinking.thinking: Field required")
            if "signature" not in spot.block:
                yield Fault("thinking_signature", f"{spot.path}.thinking.signature: Field required")
            for key in ("thinking", "signature"):
                if not isinstance(spot.block.get(key, ""), str):
                    yield Fault(
                        "thinking_field", f"{spot.path}.thinking.{key}: Input should be a valid string"
                    )


def ids_are_well_formed(ask: Ask) -> Iterator[Fault]:
    for spot in ask.spots:
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(spot.type)
        if key and not (isinstance(spot[key], str) and ID_PATTERN.fullmatch(spot[key])):
            yield Fault(
                "bad_id", f"{spot.path}.{spot.type}.{key}: String should match pattern '{ID_PATTERN.pattern}'"
            )


def call_names_are_short(ask: Ask) -> Iterator[Fault]:
    limit = ask.context.max_tool_name
    for spot in ask.spots:
        if spot.type == "tool_use" and not (isinstance(spot["name"], str) and 0 < len(spot["name"]) <= limit):
            yield Fault(
                "bad_tool_name", f"{spot.path}.tool_use.name: String should have at most {limit} characters"
            )


def inputs_are_objects(ask: Ask) -> Iterator[Fault]:
    for spot in ask.spots:
        if spot.type in ("tool_use", "server_tool_use") and not isinstance(spot["input"], Mapping):
            yield Fault("partial_input", f"{spot.path}.{spot.type}.input: Input should be a valid dictionary")


def every_block(ask: Ask) -> Iterator[tuple[str, Block]]:
    for spot in ask.spots:
        yield spot.path, spot.block
        yield from inside(spot)

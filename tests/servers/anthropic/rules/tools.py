"""Declared tools and the choice among them."""

import re
from collections.abc import Iterator, Mapping

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault

NAME_PATTERN = re.compile(r"^[a-zA-Z0-9_-]+$", re.ASCII)
CHOICES = ("auto", "any", "tool", "none")
TOOL_KEYS = frozenset(
    {"type", "name", "description", "input_schema", "cache_control", "strict", "input_examples"}
    | {"allowed_callers", "defer_loading", "eager_input_streaming"}
)


def tools_are_declared_well(ask: Ask) -> Iterator[Fault]:
    tools = ask.body.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        yield Fault("tools", "tools: Input should be a valid list")
        return
    for number, tool in enumerate(tools):
        if tool.get("type", "custom") in ("custom", None):
            yield from faults_of_tool(f"tools.{number}.custom", tool, limit=ask.context.max_tool_name)


def faults_of_tool(path: str, tool: Mapping[str, object], *, limit: int) -> Iterator[Fault]:
    name, schema = tool.get("name"), tool.get("input_schema")
    if not isinstance(name, str):
        yield Fault("bad_tool_name", f"{path}.name: Field required")
    elif len(name) > limit:
        yield Fault("bad_tool_name", f"{path}.name: String should have at most {limit} characters")
    elif not NAME_PATTERN.fullmatch(name):
        pattern = f"^[a-zA-Z0-9_-]{{1,{limit}}}$"
        yield Fault("bad_tool_name", f"{path}.name: String should match pattern '{pattern}'")
    if not isinstance(schema, Mapping):
        yield Fault("tools", f"{path}.input_schema: Field required")
    elif "type" not in schema:
        yield Fault("tools", f"{path}.input_schema.type: Field required")
    elif schema["type"] != "object":
        yield Fault("tools", f"{path}.input_schema.type: Input should be 'object'")
    for key in tool:
        if key not in TOOL_KEYS:
            yield Fault("tools", f"{path}.{key}: Extra inputs are not permitted")


def tool_names_are_unique(ask: Ask) -> Iterator[Fault]:
    if len(ask.tool_names) != len(set(ask.tool_names)):
        yield Fault("tools", "tools: Tool names must be unique.")


def tool_choice_is_well_formed(ask: Ask) -> Iterator[Fault]:
    choice = ask.body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, Mapping) or choice.get("type") not in CHOICES:
        yield Fault(
            "tool_choice", f"tool_choice: Input tag does not match any of the expected tags: {CHOICES}"
        )
    elif not ask.body.get("tools"):
        yield Fault("tool_choice", "tool_choice: tool_choice may only be specified while providing tools.")
    elif choice["type"] == "tool" and choice.get("name") not in ask.tool_names:
        yield Fault("tool_choice", f"Tool '{choice.get('name')}' not found in provided tools")


def forced_tools_exclude_thinking(ask: Ask) -> Iterator[Fault]:
    choice = ask.body.get("tool_choice") or {}
    if ask.thinking != "disabled" and choice.get("type") in ("any", "tool"):
        yield Fault("tool_choice", "Thinking may not be enabled when tool_choice forces tool use.")


def bedrock_wants_tools_declared(ask: Ask) -> Iterator[Fault]:
    uses = any(spot.type in ("tool_use", "tool_result") for spot in ask.spots)
    if ask.context.deployment == "bedrock" and uses and not ask.tools:
        yield Fault(
            "tools_missing",
            "The toolConfig field must be defined when using the toolUse and toolResult content blocks",
        )

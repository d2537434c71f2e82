"""From our request to the body of an Anthropic Messages request. Pure.

Rule 1: the bytes of a request, up to its last cache breakpoint, begin the transcript's next request.
Rule 2: nothing is sent that the API refuses; what must be left out is left out whole.

The rules of the API were collected from its refusals:
https://docs.claude.com/en/api/messages, https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain

from bot.model.clean import clean, clean_text
from bot.model.tool_names import wire_name
from core.generation import ModelRequest
from core.history import Block, Call, Json, Message, Opaque, Result, Role, Text
from core.prompt import notice
from core.tools import ToolSpec

PROVIDER = "anthropic"
CITATIONS = "citations"
"""Type of our own block that keeps the citations of the text in front of it."""

EPHEMERAL = {"type": "ephemeral"}
MIN_THINKING = 1024
NOTHING = "(no output)"
GO_ON = notice("Go on.")
BEGIN = notice("The conversation begins here.")

# Keys of a response that a request may carry; others are refused ("Extra inputs are not permitted",
# browserbase/stagehand-python#249, agno-agi/agno#8687). Types that are not here pass whole.
_SENT_BACK: Mapping[str, frozenset[str]] = {
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "server_tool_use": frozenset({"type", "id", "name", "input"}),
    "web_search_tool_result": frozenset({"type", "tool_use_id", "content"}),
    "web_fetch_tool_result": frozenset({"type", "tool_use_id", "content"}),
    "code_execution_tool_result": frozenset({"type", "tool_use_id", "content"}),
    "bash_code_execution_tool_result": frozenset({"type", "tool_use_id", "content"}),
    "text_editor_code_execution_tool_result": frozenset({"type", "tool_use_id", "content"}),
    "tool_search_tool_result": frozenset({"type", "tool_use_id", "content"}),
}
_WITH_BUDGET = re.compile(r"claude-(?:[23]|(?:opus|sonnet|haiku)-4-(?:[0-5]\b|20\d{6}))")
_THINKING = frozenset({"thinking", "redacted_thinking"})
_MARKABLE = frozenset({"text", "tool_result"})

WireBlock = dict[str, Json]
Turn = tuple[Role, list[WireBlock]]


def request_body(
    request: ModelRequest, *, model: str, max_tokens: int, thinking_tokens: int = 0
) -> WireBlock:
    """The body of the request, without `stream`."""
    turns = _turns(request.messages)
    body: WireBlock = {"model": model, "max_tokens": max_tokens}
    if thinking_tokens > 0:
        body |= _thinking(turns, model, max_tokens, max(thinking_tokens, MIN_THINKING))
    if request.tools:
        body["tools"] = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
    instructions = clean_text(request.instructions)
    if instructions.strip():
        body["system"] = [{"type": "text", "text": instructions, "cache_control": EPHEMERAL}]
    elif request.tools:
        body["tools"][-1]["cache_control"] = EPHEMERAL
    _set_breakpoints(turns)
    body["messages"] = [{"role": role.value, "content": blocks} for role, blocks in _with_ends(turns)]
    return body


def _tool(spec: ToolSpec) -> WireBlock:
    tool: WireBlock = {"name": wire_name(spec.name)}
    if spec.description.strip():
        tool["description"] = clean_text(spec.description)
    tool["input_schema"] = {"type": "object", **clean(spec.schema)}
    return tool


# --- messages ---


def _turns(messages: Iterable[Message]) -> list[Turn]:
    """Messages as turns that alternate and are not empty; in a user turn, results come first."""
    turns: list[Turn] = []
    for message in messages:
        blocks = _ordered(_blocks(message.blocks))
        if not blocks:
            continue
        if turns and turns[-1][0] is message.role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message.role, blocks))
    for role, blocks in turns:
        if role is Role.USER:
            blocks.sort(key=lambda block: block["type"] != "tool_result")  # stable
    return turns


def _blocks(blocks: Iterable[Block]) -> list[WireBlock]:
    shown: list[WireBlock] = []
    for block in blocks:
        match block:
            case Text(text):
                if text.strip():
                    shown.append({"type": "text", "text": clean_text(text)})
            case Call():
                name = wire_name(block.name)
                shown.append({"type": "tool_use", "id": block.id, "name": name, "input": clean(block.input)})
            case Result():
                shown.append(_result(block))
            case Opaque(provider, data):
                if provider == PROVIDER:
                    _add_opaque(shown, data)
    return shown


def _result(result: Result) -> WireBlock:
    text = clean_text(result.text) if result.text.strip() else NOTHING
    shown: WireBlock = {"type": "tool_result", "tool_use_id": result.call_id, "content": text}
    if result.is_error:
        shown["is_error"] = True
    return shown


def _add_opaque(shown: list[WireBlock], data: Mapping[str, Json]) -> None:
    kind = str(data.get("type", ""))
    if kind == CITATIONS:
        if shown and shown[-1]["type"] == "text":
            shown[-1][CITATIONS] = clean(data[CITATIONS])
        return
    keys = _SENT_BACK.get(kind)
    shown.append({key: clean(value) for key, value in data.items() if keys is None or key in keys})


def _ordered(blocks: list[WireBlock]) -> list[WireBlock]:
    """Text and server blocks go before the calls where the message holds blocks of the provider's own.

    `[thinking, tool_use, text]` and `[tool_use, server_tool_use]` are refused (stacklok/mecatl#1465,
    vercel/ai#13013). Thinking and calls keep their places to each other.
    """
    types = [block["type"] for block in blocks]
    if "tool_use" not in types or all(kind in {"text", "tool_use"} for kind in types):
        return blocks
    first = types.index("tool_use")
    stays = _THINKING | {"tool_use"}
    moved = [block for block in blocks[first:] if block["type"] not in stays]
    return [*blocks[:first], *moved, *(block for block in blocks[first:] if block["type"] in stays)]


# --- the ends of the request ---


def _set_breakpoints(turns: list[Turn]) -> None:
    """Mark the ends of the last two user turns: of this request, and of the one before it."""
    users = [blocks for role, blocks in turns if role is Role.USER]
    for blocks in users[-2:]:
        block = next((block for block in reversed(blocks) if block["type"] in _MARKABLE), None)
        if block is not None:
            block["cache_control"] = EPHEMERAL


def _with_ends(turns: list[Turn]) -> list[Turn]:
    """The user speaks first and last; only a paused message may be the last one, unchanged.

    "The conversation must end with a user message" (smallmain/vscode-unify-chat-provider#249); pause:
    anthropics/anthropic-sdk-python#1507.
    """
    if turns and turns[0][0] is Role.ASSISTANT:
        turns = [(Role.USER, [{"type": "text", "text": BEGIN}]), *turns]
    if not turns or (turns[-1][0] is Role.ASSISTANT and not _is_paused(turns[-1][1])):
        turns = [*turns, (Role.USER, [{"type": "text", "text": GO_ON}])]
    return turns


def _is_paused(blocks: list[WireBlock]) -> bool:
    """Whether a server's tool call has no result yet."""
    answered = {block.get("tool_use_id") for block in blocks}
    return any(str(b["type"]).endswith("_tool_use") and b.get("id") not in answered for b in blocks)


def _thinking(turns: list[Turn], model: str, max_tokens: int, budget: int) -> WireBlock:
    """Thinking, in the way that the model takes; what is thought counts towards max_tokens.

    Claude models after 4.5 decide themselves how much, and refuse a budget.
    https://platform.claude.com/docs/en/build-with-claude/thinking
    """
    room: WireBlock = {"max_tokens": max_tokens + budget}
    if "claude-" in model and not _WITH_BUDGET.search(model):
        return {**room, "thinking": {"type": "adaptive"}}
    if _lost_its_thinking(turns):
        return {"thinking": {"type": "disabled"}}
    return {**room, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _lost_its_thinking(turns: list[Turn]) -> bool:
    """Whether a message of the running tool loop lacks the thinking that a budget demands of it.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`" (anomalyco/opencode#3077):
    then it is off for this one request.
    """
    for role, blocks in reversed(turns):
        types = [block["type"] for block in blocks]
        if role is Role.USER and "tool_result" not in types:
            return False
        if role is Role.ASSISTANT and "tool_use" in types and types[0] not in _THINKING:
            return True
    return False


def characters(body: Mapping[str, Json]) -> int:
    """How much text a body holds; only to estimate the tokens of a request that broke off."""
    return sum(_length(body.get(key)) for key in ("tools", "system", "messages"))


def _length(value: Json) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_length, chain(value.keys(), value.values())))
    if isinstance(value, list):
        return sum(map(_length, value))
    return 4

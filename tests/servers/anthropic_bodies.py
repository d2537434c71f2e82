"""Request bodies for the test model: makers of them, and for each rule one that breaks it and a neighbour."""

from typing import Any

from tests.servers.anthropic.context import Context

Json = dict[str, Any]

MODEL = "claude-opus-4-6"
PREFILLS = "claude-opus-4-5"
NEWEST = "claude-opus-4-8"


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}


def asking(*messages: Any, **more: Any) -> Json:
    """A request body; a string is a message of the user."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages or ("hello",)]
    tools = {"tools": [tool("bash"), tool("logs")]}
    return {"model": MODEL, "max_tokens": 4096, **tools, "messages": said, **more}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def said(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def use(call_id: str, name: str = "bash", **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}, **more}


def result(call_id: str, content: Any = "ok", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thought(words: str = "hm", signature: str = "sig") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def search(call_id: str = "srv_1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def found(call_id: str = "srv_1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


Case = tuple[str, Json, Json]

ENABLED = {"model": PREFILLS, "thinking": {"type": "enabled", "budget_tokens": 1024}}
ADAPTIVE = {"thinking": {"type": "adaptive"}}
SHORT = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
WIDE_PNG = {**PNG, "data": "iVBORw0KGgoAAAANSUhEUgAACWAAAASw"}


def image(source: Json) -> Json:
    return {"type": "image", "source": source}


CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}


def warm(temperature: float, *, version: str = "2023-06-01", **more: Any) -> Json:
    """With a temperature, which only the older API version knows."""
    headers = {"anthropic-version": version}
    return asking(extra_body={"temperature": temperature}, extra_headers=headers, **more)


RULE_CASES: dict[str, Case] = {
    "sampling_parameters_are_gone": ("sampling", warm(1, version="2026-10-21"), warm(1)),
    "assistants_send_no_documents": (
        "wrong_role",
        asking("x", assistant(DOCUMENT), "y"),
        asking(user(DOCUMENT)),
    ),
    "users_cite_nothing": (
        "extra_field",
        asking(user(said("x", citations=[CITATION]))),
        asking("x", assistant(said("x", citations=[CITATION])), "y"),
    ),
    "only_known_keys": (
        "unknown_key",
        asking(extra_body={"frequency": 1}),
        asking(metadata={"user_id": "u"}),
    ),
    "the_model_is_named": ("model", asking(model=""), asking(model="claude-of-tomorrow")),
    "max_tokens_is_positive": ("max_tokens", asking(max_tokens=0), asking(max_tokens=1)),
    "messages_are_messages": ("messages", asking({"role": "tool", "content": "x"}), asking("x")),
    "the_system_prompt_is_text": (
        "system",
        asking(system=[{"type": "image"}]),
        asking(system=[said("You are brief.")]),
    ),
    "sampling_is_in_range": (
        "sampling",
        warm(1.5),
        warm(0.5),
    ),
    "stream_is_a_flag": ("stream", asking(extra_body={"stream": "yes"}), asking(stream=False)),
    "tools_are_declared_well": (
        "tools",
        asking(tools=[{"name": "logs", "input_schema": {"type": "string"}}]),
        asking(tools=[{"name": "logs", "input_schema": {"type": "object"}}]),
    ),
    "tool_names_are_unique": (
        "tools",
        asking(tools=[tool("a"), tool("a")]),
        asking(tools=[tool("a"), tool("b")]),
    ),
    "tool_choice_is_well_formed": (
        "tool_choice",
        asking(tool_choice={"type": "tool", "name": "nope"}),
        asking(tool_choice={"type": "tool", "name": "logs"}),
    ),
    "block_types_are_known": ("unknown_block", asking(user({"type": "hologram"})), asking(user(said("x")))),
    "blocks_carry_no_extra_keys": (
        "extra_field",
        asking(user(said("x", parsed_output=None))),
        asking(user(said("x", citations=None))),
    ),
    "blocks_are_complete": ("missing_field", asking(user({"type": "text"})), asking(user(said("x")))),
    "thinking_is_complete": (
        "thinking_field",
        asking("x", assistant({"type": "thinking", "signature": "s"}, said("a")), "y"),
        asking("x", assistant(thought(""), said("a")), "y"),
    ),
    "ids_are_well_formed": (
        "bad_id",
        asking("x", assistant(use("a.b")), user(result("a.b"))),
        asking("x", assistant(use("a-b_C9")), user(result("a-b_C9"))),
    ),
    "call_names_are_short": (
        "bad_tool_name",
        asking("x", assistant(use("t1", "n" * 65)), user(result("t1"))),
        asking("x", assistant(use("t1", "n" * 64)), user(result("t1"))),
    ),
    "inputs_are_objects": (
        "partial_input",
        asking("x", assistant(use("t1", input='{"a')), user(result("t1"))),
        asking("x", assistant(use("t1", input={"a": 1})), user(result("t1"))),
    ),
    "images_are_what_they_say": (
        "bad_image",
        asking(user(image({**PNG, "media_type": "image/bmp"}))),
        asking(user(image(PNG))),
    ),
    "thinking_is_of_a_kind_the_model_takes": (
        "thinking",
        asking(**{**ENABLED, "model": NEWEST}),
        asking(model=NEWEST, **ADAPTIVE),
    ),
    "the_thinking_budget_fits": (
        "thinking",
        asking(max_tokens=1024, **ENABLED),
        asking(max_tokens=1025, **ENABLED),
    ),
    "sampling_fits_the_model": (
        "sampling",
        warm(0.2, model=NEWEST),
        warm(0.2),
    ),
    "the_output_fits_the_model": (
        "max_tokens",
        asking(model=PREFILLS, max_tokens=64_001, timeout=9),
        asking(model=PREFILLS, max_tokens=64_000, timeout=9),
    ),
    "forced_tools_exclude_thinking": (
        "tool_choice",
        asking(tool_choice={"type": "any"}, **ADAPTIVE),
        asking(tool_choice={"type": "auto"}, **ADAPTIVE),
    ),
    "the_user_speaks_first": (
        "first_turn",
        asking(assistant(said("a")), "x"),
        asking("x", assistant(said("a")), "y"),
    ),
    "blocks_are_in_the_right_role": ("wrong_role", asking(user(use("t1"))), asking(user(said("x")))),
    "call_ids_are_unique": (
        "duplicate_id",
        asking("x", assistant(use("t1")), user(result("t1")), assistant(use("t1")), user(result("t1"))),
        asking("x", assistant(use("t1")), user(result("t1")), assistant(use("t2")), user(result("t2"))),
    ),
    "client_calls_come_last": (
        "tool_use_not_last",
        asking("x", assistant(thought(), use("t1"), said("and")), user(result("t1")), **ADAPTIVE),
        asking("x", assistant(thought(), said("and"), use("t1")), user(result("t1")), **ADAPTIVE),
    ),
    "calls_are_answered": (
        "result_not_first",
        asking("x", assistant(use("t1"), use("t2")), user(result("t1"), said("so"), result("t2"))),
        asking("x", assistant(use("t1"), use("t2")), user(result("t2"), result("t1"), said("so"))),
    ),
    "results_answer_the_turn_before": (
        "orphan_result",
        asking(user(result("t1"))),
        asking("x", assistant(use("t1")), user(result("t1"))),
    ),
    "each_call_has_one_result": (
        "duplicate_result",
        asking("x", assistant(use("t1")), user(result("t1"), result("t1"))),
        asking("x", assistant(use("t1")), user(result("t1", [said("a"), said("b")]))),
    ),
    "server_results_follow_their_call": (
        "server_orphan",
        asking("x", assistant(found(), search(), said("a")), "y"),
        asking("x", assistant(search(), found(), said("a")), "y"),
    ),
    "server_calls_are_finished": (
        "server_pair",
        asking("x", assistant(search()), "go on"),
        asking("x", assistant(search(), use("t1")), user(result("t1"))),
    ),
    "tool_references_are_declared": (
        "tool_reference",
        asking(
            "x",
            assistant(
                *[  # the model looked for a tool that is no longer declared
                    {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {}},
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": "s",
                        "content": {
                            "type": "tool_search_tool_search_result",
                            "tool_references": [{"type": "tool_reference", "tool_name": "gone"}],
                        },
                    },
                ]
            ),
            "y",
        ),
        asking(
            "x",
            assistant(
                *[
                    {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {}},
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": "s",
                        "content": {
                            "type": "tool_search_tool_search_result",
                            "tool_references": [{"type": "tool_reference", "tool_name": "logs"}],
                        },
                    },
                ]
            ),
            "y",
        ),
    ),
    "programmatic_calls_name_their_container": (
        "container_missing",
        asking(
            "x",
            assistant(use("t1", caller={"type": "code_execution_20260120", "tool_id": "s"})),
            user(result("t1")),
        ),
        asking("x", assistant(use("t1", caller={"type": "direct"})), user(result("t1"))),
    ),
    "few_breakpoints": (
        "cache_control",
        asking(user(*[said(str(n), **SHORT) for n in range(5)])),
        asking(user(*[said(str(n), **SHORT) for n in range(4)])),
    ),
    "no_breakpoint_on_empty_text": (
        "cache_control",
        asking(user(said("", **SHORT))),
        asking(user(said("x", **SHORT))),
    ),
    "long_lived_breakpoints_come_first": (
        "cache_control",
        asking(system=[said("a", **SHORT), said("b", **LONG)]),
        asking(system=[said("a", **LONG), said("b", **SHORT)]),
    ),
    "messages_are_not_empty": (
        "empty_message",
        asking("x", assistant(), "y"),
        asking("x", {"role": "assistant", "content": []}, model=PREFILLS),
    ),
    "texts_are_not_empty": ("empty_text", asking(user(said(""))), asking(user(said("x")))),
    "texts_are_not_blank": ("whitespace_text", asking(user(said(" \n"))), asking(user(said(" x\n")))),
    "error_results_say_something": (
        "empty_error_result",
        asking("x", assistant(use("t1")), user(result("t1", " ", is_error=True))),
        asking("x", assistant(use("t1")), user(result("t1", "", is_error=False))),
    ),
    "no_nul": ("nul_byte", asking("a\0b"), asking("a\\0b")),
    "signatures_are_valid": (
        "thinking_signature",
        asking("x", assistant(thought("p", ""), said("a")), "y"),
        asking("x", assistant(thought("p", "sig"), said("a")), "y"),
    ),
    "the_running_loop_starts_with_thinking": (
        "thinking_missing",
        asking("x", assistant(use("t1")), user(result("t1")), **ENABLED),
        asking("x", assistant(use("t1")), user(result("t1")), assistant(said("done")), "y", **ENABLED),
    ),
    "only_old_models_take_a_prefill": (
        "prefill",
        asking("x", assistant(said("The answer is"))),
        asking("x", assistant(said("The answer is")), model=PREFILLS),
    ),
    "a_prefill_needs_thinking_for_its_thoughts": (
        "thinking_disabled",
        asking("x", assistant(thought(), said("a")), model=PREFILLS),
        asking("x", assistant(thought(), said("a")), **ENABLED),
    ),
    "a_prefill_has_no_trailing_whitespace": (
        "trailing_whitespace",
        asking("x", assistant(said("a ")), model=PREFILLS),
        asking("x", assistant(said(" a")), model=PREFILLS),
    ),
    "many_images_are_small": (
        "image_too_big",
        asking(user(*[image(PNG)] * 20, image(WIDE_PNG))),
        asking(user(*[image(PNG)] * 19, image(WIDE_PNG))),
    ),
    "the_prompt_fits_the_window": (
        "over_long",
        asking("x" * 800_001, model=PREFILLS),
        asking("x" * 800_001),
    ),
}

STRICT_CASES: dict[str, tuple[Context, str, Json, Json]] = {
    "bedrock_wants_tools_declared": (
        Context(deployment="bedrock"),
        "tools_missing",
        asking("x", assistant(use("t1")), user(result("t1")), tools=[]),
        asking("x", assistant(use("t1")), user(result("t1"))),
    ),
    "calls_of_a_turn_are_not_split": (
        Context(deployment="bedrock"),
        "split_calls",
        asking("x", assistant(use("t1")), assistant(use("t2")), user(result("t1"), result("t2"))),
        asking("x", assistant(use("t1"), use("t2")), user(result("t1"), result("t2"))),
    ),
    "results_of_a_batch_are_not_split": (
        Context(strict_split=True),
        "split_results",
        asking("x", assistant(use("t1"), use("t2")), user(result("t1")), user(result("t2"))),
        asking("x", assistant(use("t1"), use("t2")), user(result("t1"), result("t2"))),
    ),
    "roles_alternate": (Context(deployment="bedrock"), "role_alternation", asking("x", "y"), asking("x")),
    "latest_thinking_is_unchanged": (
        Context(original=[thought("whole"), use("t1")]),
        "thinking_modified",
        asking("x", assistant(thought("cut"), use("t1")), user(result("t1")), **ENABLED),
        asking("x", assistant(thought("whole"), use("t1")), user(result("t1")), **ENABLED),
    ),
}

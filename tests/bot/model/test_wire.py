"""The body of a request: accepted whatever the transcript holds, and begun by the one before it."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.wire import BEGIN, GO_ON, request_body
from core.generation import ModelRequest
from core.history import Call, Message, Opaque, Result, Role, Text, assistant, user
from tests.bot.model.transcripts import ASK, TOOLS, request, transcripts
from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.context import Context
from tests.servers.anthropic.memory import Memory
from tests.servers.anthropic.rules.table import judge

OLD_MODEL, NEW_MODEL = "claude-sonnet-4-5", "claude-sonnet-5-5"
THOUGHT = Opaque("anthropic", {"type": "thinking", "thinking": "hm", "signature": "sig"})


def body_of(asked: ModelRequest, thinking_tokens: int = 0, model: str = NEW_MODEL) -> dict[str, Any]:
    """The body after a trip over the wire."""
    body = request_body(asked, model=model, max_tokens=4096, thinking_tokens=thinking_tokens)
    sent: dict[str, Any] = json.loads(json.dumps(body, allow_nan=False, ensure_ascii=False).encode())
    return sent


def shown(*messages: Message) -> list[tuple[str, list[Any]]]:
    """Role and blocks of each message, without the marks."""
    return [
        (message["role"], [without_mark(block) for block in message["content"]])
        for message in body_of(request(*messages))["messages"]
    ]


def without_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def faults_of(body: dict[str, Any], **context: Any) -> list[str]:
    asked = Ask({**body, "stream": True}, Context(**context), Memory(), beta=False, counting=False)
    return [fault.message for fault in judge(asked)]


# What stands where


def test_a_request_has_one_system_block_and_its_tools_in_a_stable_order() -> None:
    body = body_of(request(ASK))
    assert [without_mark(block) for block in body["system"]] == [text("You are Watchkeeper.")]
    assert [tool["name"] for tool in body["tools"]][1:3] == ["logs", "metrics"]
    assert body["tools"] == body_of(request(ASK, tools=TOOLS[::-1]))["tools"]


def test_messages_of_one_role_are_merged_results_first() -> None:
    history = (
        ASK,
        assistant(Text("looking"), Call("a", "logs", {})),
        user(Result("a", "5 lines")),
        user(Text("look at 14:05")),
    )
    assert shown(*history) == [
        ("user", [text("why is checkout slow?")]),
        ("assistant", [text("looking"), {"type": "tool_use", "id": "a", "name": "logs", "input": {}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "a", "content": "5 lines"}, text("look at 14:05")]),
    ]


def test_blank_texts_and_empty_messages_are_left_out() -> None:
    assert shown(ASK, assistant(Text(" \n")), user(Text("hello?"), Text(""))) == [
        ("user", [text("why is checkout slow?"), text("hello?")])
    ]


def test_blocks_of_another_provider_are_dropped_whole() -> None:
    foreign = Opaque("openai", {"type": "reasoning", "id": "rs_1"})
    assert shown(ASK, assistant(foreign, Text("DNS")), user(Text("sure?")))[1] == ("assistant", [text("DNS")])


def test_thinking_goes_back_as_it_came_without_keys_of_the_response() -> None:
    thought = Opaque("anthropic", {"type": "thinking", "thinking": "", "signature": "s", "index": 0})
    said = shown(ASK, assistant(thought, Text("DNS")), user(Text("sure?")))[1][1]
    assert said[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_an_unknown_block_goes_back_whole() -> None:
    block = {"type": "weather_tool_result", "tool_use_id": "srvtoolu_1", "sky": ["clear"]}
    assert shown(ASK, assistant(Opaque("anthropic", block), Text("x")), ASK)[1][1][0] == block


def test_citations_go_back_into_their_text() -> None:
    cited = Opaque("anthropic", {"type": "citations", "citations": [{"type": "char_location"}]})
    assert shown(ASK, assistant(Text("DNS"), cited), ASK)[1][1] == [
        {"type": "text", "text": "DNS", "citations": [{"type": "char_location"}]}
    ]


def test_an_error_always_says_something() -> None:
    history = (ASK, assistant(Call("a", "logs", {})), user(Result("a", " ", is_error=True)))
    assert shown(*history)[2][1] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "(no output)", "is_error": True}
    ]


def test_lone_surrogates_and_nul_are_replaced_and_pairs_are_joined() -> None:
    history = (
        user(Text("a\ud83d b\0 \ud83d\ude00")),
        assistant(Call("a", "logs", {"\ud83d": ["\udc00"]})),
        user(Result("a", "\udfff")),
    )
    assert shown(*history)[0][1] == [text("a\ufffd b\ufffd 😀")]
    assert shown(*history)[1][1][0]["input"] == {"\ufffd": ["\ufffd"]}


def test_a_tool_name_that_is_refused_is_the_same_legal_one_everywhere() -> None:
    history = (ASK, assistant(Call("a", "k8s.pods", {})), user(Result("a", "none")))
    called = shown(*history)[1][1][0]["name"]
    assert called in [tool["name"] for tool in body_of(request(*history))["tools"]]


def test_with_thinking_text_behind_a_call_goes_before_it() -> None:
    history = (ASK, assistant(THOUGHT, Call("a", "logs", {}), Text("so")), user(Result("a", "1")))
    assert [block["type"] for block in shown(*history)[1][1]] == ["thinking", "text", "tool_use"]


def test_without_blocks_of_the_provider_the_order_is_as_recorded() -> None:
    history = (ASK, assistant(Call("a", "logs", {}), Text("so")), user(Result("a", "1")))
    assert [block["type"] for block in shown(*history)[1][1]] == ["tool_use", "text"]


# The ends


def test_the_user_speaks_first_and_last() -> None:
    assert [role for role, _ in shown(assistant(Text("hello")))] == ["user", "assistant", "user"]
    assert [role for role, _ in shown()] == ["user"]


def test_a_paused_message_stays_last() -> None:
    paused = Opaque(
        "anthropic", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    )
    assert [role for role, _ in shown(ASK, assistant(Text("searching"), paused))] == ["user", "assistant"]


# Thinking


def test_thinking_adds_to_the_token_limit() -> None:
    body = body_of(request(ASK), 2000, OLD_MODEL)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert body["max_tokens"] == 6096


@pytest.mark.parametrize(
    "model, kind",
    [
        ("claude-3-7-sonnet-20250219", "enabled"),
        ("claude-sonnet-4-20250514", "enabled"),
        ("claude-haiku-4-5-20251001", "enabled"),
        ("claude-opus-4-6", "adaptive"),
        ("claude-sonnet-5-5", "adaptive"),
        ("anthropic.claude-opus-5-20260101", "adaptive"),
        ("glm-5", "enabled"),
    ],
)
def test_a_model_thinks_in_the_way_that_it_takes(model: str, kind: str) -> None:
    assert body_of(request(ASK), 2000, model)["thinking"]["type"] == kind


def test_thinking_is_not_mentioned_where_it_is_not_configured() -> None:
    assert "thinking" not in body_of(request(ASK))


@pytest.mark.parametrize("steer", [(), (Text("look at 14:05"),)])
def test_thinking_is_off_for_a_running_loop_that_lost_it(steer: tuple[Text, ...]) -> None:
    history = (ASK, assistant(Call("a", "logs", {})), user(Result("a", "1"), *steer))
    assert body_of(request(*history), 2000, OLD_MODEL)["thinking"] == {"type": "disabled"}


def test_a_finished_loop_needs_no_thinking() -> None:
    history = (ASK, assistant(Call("a", "logs", {})), user(Result("a", "1")), assistant(Text("DNS")), ASK)
    assert body_of(request(*history), 2000, OLD_MODEL)["thinking"]["type"] == "enabled"


# Laws


@given(
    messages=transcripts(),
    thinking_tokens=st.sampled_from([0, 2000]),
    model=st.sampled_from([OLD_MODEL, NEW_MODEL]),
)
@settings(max_examples=50, deadline=None)
def test_every_valid_transcript_is_accepted(
    messages: list[Message], thinking_tokens: int, model: str
) -> None:
    body = body_of(request(*messages), thinking_tokens, model)
    assert faults_of(body) == []
    assert faults_of(body, deployment="bedrock") == []


def marked_prefix(body: dict[str, Any]) -> list[Any]:
    """All blocks up to the last breakpoint, each with its place, without the marks."""
    blocks = all_blocks(body)
    last = max(at for at, (_, block) in enumerate(blocks) if "cache_control" in block)
    return [(place, without_mark(block)) for place, block in blocks[: last + 1]]


def all_blocks(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    messages = body["messages"]
    return [
        *(("tools", tool) for tool in body["tools"]),
        *(("system", block) for block in body["system"]),
        *(
            (f"{n} {message['role']}", block)
            for n, message in enumerate(messages)
            for block in message["content"]
        ),
    ]


@given(messages=transcripts())
@settings(max_examples=50, deadline=None)
def test_every_request_begins_with_the_one_before_it(messages: list[Message]) -> None:
    ends = [n + 1 for n, message in enumerate(messages) if message.role is Role.USER]
    bodies = [body_of(request(*messages[:end])) for end in ends]
    for before, after in pairwise(bodies):
        prefix = marked_prefix(before)
        begun = [(place, without_mark(block)) for place, block in all_blocks(after)][: len(prefix)]
        assert json.dumps(begun) == json.dumps(prefix)


@given(messages=transcripts())
@settings(max_examples=50, deadline=None)
def test_a_request_is_marked_where_it_ends_and_where_the_one_before_ended(messages: list[Message]) -> None:
    body = body_of(request(*messages))
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    marked = ["cache_control" in content[-1] for content in users]
    assert len([block for _, block in all_blocks(body) if "cache_control" in block]) <= 3
    ours = (text(BEGIN), text(GO_ON))
    own = [flag for content, flag in zip(users, marked, strict=True) if content[-1] not in ours]
    assert own[-2:] == [True] * len(own[-2:])

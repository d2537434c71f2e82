"""The test model is asked by the real SDK, and refuses what the real API refuses."""

import asyncio
import copy
import io
import json
import random
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from anthropic import (
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    AsyncStream,
    BadRequestError,
    DefaultAsyncHttpxClient,
    RateLimitError,
)
from anthropic.types import RawMessageStreamEvent

from tests.servers.anthropic.__main__ import investigate
from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.blocks import (
    call,
    raw_block,
    redacted_thinking,
    server_call,
    server_result,
    text,
    thinking,
)
from tests.servers.anthropic.cache import PromptCache
from tests.servers.anthropic.context import Context
from tests.servers.anthropic.door import MAX_BODY
from tests.servers.anthropic.history import spots_of
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import (
    forbidden,
    hang,
    invalid_key,
    overloaded,
    rate_limited,
    refusal,
    reply,
    server_error,
    unknown_model,
)
from tests.servers.anthropic.rules.table import RULES, judge
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.anthropic.usage import Usage
from tests.servers.anthropic_bodies import (
    ADAPTIVE,
    ENABLED,
    LONG,
    MODEL,
    NEWEST,
    PREFILLS,
    RULE_CASES,
    SHORT,
    STRICT_CASES,
    Json,
    asking,
    assistant,
    result,
    said,
    thought,
    tool,
    use,
    user,
)

HEADERS = {"x-api-key": "test", "anthropic-version": "2023-06-01"}
HISTORIES = Path(__file__).parents[1] / "data" / "histories.jsonl"


pytestmark = pytest.mark.filterwarnings("ignore:The model 'claude-opus-4-5' is deprecated")


@pytest.fixture
async def model() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def sdk(model: AnthropicServer) -> AsyncIterator[AsyncAnthropic]:
    async with client_of(model) as client:
        yield client


def client_of(model: AnthropicServer) -> AsyncAnthropic:
    """The SDK as it is, but for the certificates, which take long to load and are not needed."""
    http = DefaultAsyncHttpxClient(verify=False)
    return AsyncAnthropic(base_url=model.url, api_key="test", max_retries=0, timeout=5, http_client=http)


async def streamed(sdk: AsyncAnthropic, body: Json | None = None) -> list[Any]:
    stream: AsyncStream[RawMessageStreamEvent] = await sdk.messages.create(**(body or asking()), stream=True)
    return [event async for event in stream]


async def final(sdk: AsyncAnthropic, body: Json | None = None) -> Any:
    async with sdk.messages.stream(**(body or asking())) as stream:
        return await stream.get_final_message()


async def post(model: AnthropicServer, body: Any, **headers: str | None) -> tuple[int, Json]:
    """Without the SDK, for what it would not send."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in {**HEADERS, **named}.items() if value is not None}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{model.url}/v1/messages", data=io.BytesIO(raw), headers=sent) as answer,
    ):
        return answer.status, json.loads(await answer.read())


async def refused(sdk: AsyncAnthropic, body: Json) -> str:
    """The kind of the fault that this body is refused for; empty when it is taken."""
    try:
        await sdk.messages.create(**body)
    except APIStatusError as error:
        return str(error.response.headers["x-fault-kind"])
    return ""


# Histories that bricked real sessions


def histories() -> list[Any]:
    lines = [json.loads(line) for line in HISTORIES.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(line, id=line["id"]) for line in lines if line["provider"] == "anthropic"]


def body_of(case: Json, ctx: Json) -> Json:
    names = ctx.get("tools")
    if names is None:
        names = sorted(
            {spot["name"] for spot in spots_of(case["history"]) if spot.type == "tool_use"} | {"bash"}
        )
    body = asking(*case["history"], tools=[tool(name) for name in names])
    body["model"] = PREFILLS if ctx.get("prefill") or ctx.get("thinking") else MODEL
    if ctx.get("thinking") == "enabled":
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    return body


def context_of(ctx: Json) -> Context:
    known = (
        "deployment",
        "strict_split",
        "original",
        "image_px",
        "image_count",
        "tokens",
        "max_tokens_window",
    )
    return Context(**{key: value for key, value in ctx.items() if key in known})


def worded(message: str) -> str:
    """Positions and full stops aside, which reports and the API give unreliably."""
    return re.sub(r"(messages?|tools)\.[\dN]+(\.content\.[\dM]+)?", r"\1.N", message).rstrip(". ")


@pytest.mark.parametrize("case", histories())
async def test_a_history_from_a_real_report_is_judged_as_reported(case: Json) -> None:
    """Sent by the real SDK, but for half a surrogate pair, which it cannot write."""
    ctx = case.get("ctx") or {}
    async with AnthropicServer(context=context_of(ctx)) as model, client_of(model) as sdk:
        model.reply_always("fine")
        if case["fault"] == "lone_surrogate":
            status, _ = await post(model, body_of(case, ctx))
            assert status == 400
        else:
            assert bool(await refused(sdk, body_of(case, ctx))) != case["valid"], model.dump()
        if not case["valid"]:
            kinds = [fault.kind for fault in model.last_request.faults]
            assert model.last_request.status == 400
            assert kinds[0] == case["fault"] or set(case["fault"].split("+")) <= set(kinds), model.dump()


@pytest.mark.parametrize("case", [case for case in histories() if case.values[0]["error"]])
def test_a_refusal_speaks_the_words_of_the_report(case: Json) -> None:
    ctx = case.get("ctx") or {}
    if case["id"] not in OTHER_WORDS:
        spoken = judge(Ask(body_of(case, ctx), context_of(ctx)))[0].message
        assert worded(spoken).startswith(worded(case["error"].removesuffix("...")))


OTHER_WORDS = {
    "cc-lone-surrogate-input",  # refused at the door
    "sdk-ts-result-optional",  # the wording until spring 2025
    "opencode-step-retry-amplifier",  # the report names only one of the three calls
    "pydantic-cancel-first-inflight",  # the client's own words
    "pi-image-2000px-many",  # the path lacks the way into the result
    "langalpha-nul-byte",  # the database's words
    "pi-partial-json-input",  # cut off in the report
    "dify-results-exceed-calls",  # `message` for `messages`
}


# Rules, each with a refusing and an accepting neighbour


@pytest.mark.parametrize("rule", RULE_CASES)
async def test_a_rule_refuses_its_fault_and_takes_the_neighbour(
    model: AnthropicServer, sdk: AsyncAnthropic, rule: str
) -> None:
    model.reply_always("fine")
    kind, bad, good = RULE_CASES[rule]
    assert await refused(sdk, bad) == kind, model.dump()
    assert await refused(sdk, good) == "", model.dump()


@pytest.mark.parametrize("rule", STRICT_CASES)
async def test_a_strict_deployment_refuses_more(rule: str) -> None:
    context, kind, bad, good = STRICT_CASES[rule]
    async with AnthropicServer(context=context) as model, client_of(model) as sdk:
        model.reply_always("fine")
        assert await refused(sdk, bad) == kind, model.dump()
        assert await refused(sdk, good) == "", model.dump()


def test_every_rule_has_a_refusing_and_an_accepting_neighbour() -> None:
    assert set(RULE_CASES) | set(STRICT_CASES) == set(RULES)


@pytest.mark.parametrize("rule", STRICT_CASES.keys() - {"latest_thinking_is_unchanged"})
async def test_the_first_party_folds_what_others_refuse(
    model: AnthropicServer, sdk: AsyncAnthropic, rule: str
) -> None:
    model.reply_always("fine")
    assert await refused(sdk, STRICT_CASES[rule][2]) == ""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a body."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def test_no_malformed_body_makes_a_rule_stumble() -> None:
    junk: list[Any] = [None, 1, "", "x", [], {}, [1], [{}], True, {"type": 5}]
    chance = random.Random(4)
    bodies = [body for case in RULE_CASES.values() for body in case[1:] if len(str(body)) < 5_000]
    for _ in range(1_000):
        body = copy.deepcopy(chance.choice(bodies))
        *way, last = chance.choice(list(places(body)))
        part: Any = body
        for key in way:
            part = part[key]
        part[last] = chance.choice(junk)
        if not judge(Ask(body)):
            PromptCache().take(body)


# The door


async def test_a_missing_key_is_refused_with_401(model: AnthropicServer) -> None:
    status, answer = await post(model, asking(), x_api_key=None)
    assert (status, answer["error"]["type"]) == (401, "authentication_error")


async def test_a_missing_version_is_refused_with_400(model: AnthropicServer) -> None:
    status, answer = await post(model, asking(), anthropic_version=None)
    assert (status, answer["error"]["message"]) == (400, "anthropic-version: header is required")


async def test_an_unknown_version_is_refused_with_400(model: AnthropicServer) -> None:
    status, answer = await post(model, asking(), anthropic_version="2042-01-01")
    assert (status, answer["error"]["message"]) == (
        400,
        'anthropic-version: "2042-01-01" is not a valid version',
    )


async def test_a_wrong_key_is_refused_where_one_is_set() -> None:
    async with AnthropicServer(api_key="right") as model:
        model.reply_always("fine")
        assert (await post(model, asking()))[1]["error"]["message"] == "invalid x-api-key"
        assert (await post(model, asking(), x_api_key="right"))[0] == 200


async def test_a_body_over_32_mb_is_refused_with_413(model: AnthropicServer) -> None:
    status, answer = await post(model, b" " * (MAX_BODY + 1))
    assert (status, answer["error"]["type"]) == (413, "request_too_large")


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b'{"a": NaN}', b"[]", b"", b"[" * 100_000])
async def test_what_is_no_json_object_is_refused(model: AnthropicServer, raw: bytes) -> None:
    assert (await post(model, raw))[0] == 400
    assert model.last_request.faults[0].kind == "bad_json"


async def test_half_a_surrogate_pair_is_refused_and_a_whole_one_is_taken(model: AnthropicServer) -> None:
    model.reply_always("fine")
    assert (await post(model, asking("\ud83d")))[0] == 400
    assert "no low surrogate in string" in model.last_request.faults[0].message
    assert (await post(model, asking("\ud83d\ude00")))[0] == 200


async def test_required_keys_are_named(model: AnthropicServer) -> None:
    _, answer = await post(model, {"model": MODEL, "messages": [{"role": "user", "content": "x"}]})
    assert answer["error"]["message"] == "max_tokens: Field required"
    assert answer["type"] == "error"
    assert answer["request_id"] == model.last_request.request_id


async def test_an_unknown_model_is_not_found(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    with pytest.raises(APIStatusError) as caught:
        await sdk.messages.create(**asking(model="gpt-4"))
    assert (caught.value.status_code, caught.value.type) == (404, "not_found_error")
    assert [request.verdict for request in model.refused] == ["refused"]


# Scripts and what the SDK makes of them


async def test_a_stream_keeps_the_grammar(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(reply(thinking("hm"), "hello", call("logs", {"app": "shop"})).chunked(4))
    names = [event.type for event in await streamed(sdk)]
    assert names[0] == "message_start"
    assert names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 3
    assert model.last_request.event_names == names


async def test_a_streamed_message_comes_together_in_the_sdk(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script(reply(thinking("hm", "sig-9"), "hello", call("logs", {"app": "shöp"}, id="toolu_x")))
    message = await final(sdk)
    thoughts, words, use_block = message.content
    assert (thoughts.thinking, thoughts.signature) == ("hm", "sig-9")
    assert words.text == "hello"
    assert (use_block.id, use_block.name, use_block.input) == ("toolu_x", "logs", {"app": "shöp"})
    assert message.stop_reason == "tool_use"


async def test_without_streaming_the_same_message_comes_whole(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script([text("hello"), call("logs", {"n": 1}), redacted_thinking("xyz")])
    message = await sdk.messages.create(**asking())
    assert [block.type for block in message.content] == ["text", "tool_use", "redacted_thinking"]
    assert message.usage.output_tokens > 0
    assert message._request_id == model.last_request.request_id


@pytest.mark.parametrize("chunk", [1, 3, 1000, None])
async def test_text_and_tool_input_survive_every_chunking(
    model: AnthropicServer, sdk: AsyncAnthropic, chunk: int | None
) -> None:
    said_text, sent_input = "a\n\nb 😀 data: x\r\n", {"q": 'é"\\', "n": [1, {"x": None}]}
    answer = reply(said_text, call("logs", sent_input))
    model.script(answer.chunked(chunk) if chunk else answer)
    message = await final(sdk)
    assert message.content[0].text == said_text
    assert message.content[1].input == sent_input


async def test_steps_are_played_in_order_and_then_the_end_is_said_clearly(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script("one", reply("two"))
    assert [(await final(sdk)).content[0].text for _ in range(2)] == ["one", "two"]
    with pytest.raises(APIStatusError, match="has no step for request 3"):
        await final(sdk)
    model.reply_always("and so on")
    assert (await final(sdk)).content[0].text == "and so on"


async def test_a_refused_request_uses_up_no_step(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script("kept")
    with pytest.raises(BadRequestError):
        await final(sdk, asking(assistant(said("a")), "x"))
    assert model.steps_left == 1
    assert (await final(sdk)).content[0].text == "kept"


async def test_a_function_answers_several_conversations_at_once(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    async def echo(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return f"you said {request.user_texts()[-1]}"

    model.reply_with(echo)
    answers = await asyncio.gather(*(final(sdk, asking(f"hello {n}")) for n in range(8)))
    assert [answer.content[0].text for answer in answers] == [f"you said hello {n}" for n in range(8)]


@pytest.mark.parametrize(
    "reason",
    ["end_turn", "tool_use", "max_tokens", "pause_turn", "model_context_window_exceeded", "bored", None],
)
async def test_any_stop_reason_can_be_forced(
    model: AnthropicServer, sdk: AsyncAnthropic, reason: str | None
) -> None:
    model.script(reply("x", call("logs"), stop_reason=reason))
    assert (await final(sdk)).stop_reason == reason


async def test_a_refusal_says_why(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(refusal(explanation="no"))
    message = await final(sdk)
    assert (message.stop_reason, message.content) == ("refusal", [])
    assert message.stop_details.explanation == "no"


async def test_server_tool_blocks_are_streamed_like_the_real_ones(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    searched = server_call("web_search", {"query": "q"}, id="srvtoolu_1")
    model.script(reply(searched, server_result("web_search_tool_result", "srvtoolu_1", []), "found"))
    message = await final(sdk)
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
    assert message.content[0].input == {"query": "q"}
    assert message.stop_reason == "end_turn"


async def test_what_the_model_said_is_taken_back_unchanged(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    """A whole tool loop, with thinking, a block type nobody knows, and a call without input."""
    model.script(reply(thinking("hm"), raw_block({"type": "hologram", "of": "cat"}), call("logs")), "done")
    first = await sdk.messages.create(**asking(**ENABLED))
    back: list[Any] = [block.to_dict() for block in first.content]
    await sdk.messages.create(**asking("hello", assistant(*back), user(result(back[-1]["id"])), **ENABLED))
    assert not model.refused, model.dump()


@pytest.mark.parametrize("broken", ["trimmed", "reordered", "dropped"])
async def test_thinking_that_was_changed_on_the_way_back_is_refused(
    model: AnthropicServer, sdk: AsyncAnthropic, broken: str
) -> None:
    model.reply_always("fine")
    model.script(reply(thinking("one"), call("logs"), thinking("two"), call("bash")))
    message = await sdk.messages.create(**asking(**ADAPTIVE))
    a, b, c, d = [dict[str, Any](block.to_dict()) for block in message.content]
    sent = {"trimmed": [{**a, "thinking": "on"}, b, c, d], "reordered": [a, c, b, d], "dropped": [a, b, d]}[
        broken
    ]
    answers = user(result(b["id"]), result(d["id"]))
    assert await refused(sdk, asking("hello", assistant(*sent), answers, **ADAPTIVE)) == "thinking_modified"
    whole = asking("hello", assistant(a, b, c, d), answers, **ADAPTIVE)
    assert await refused(sdk, whole) == "", model.dump()


async def test_older_thoughts_are_checked_by_their_signature(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("fine")
    model.script(reply(thinking("one", "sig-a"), "a"))
    await final(sdk)
    tail = [assistant(said("b")), "y"]
    assert await refused(sdk, asking("x", assistant(thought("won", "sig-a"), said("a")), "x", *tail)) == (
        "thinking_signature"
    )
    assert await refused(sdk, asking("x", assistant(thought("one", "sig-a"), said("a")), "x", *tail)) == ""


async def test_a_foreign_signature_is_refused_where_signatures_are_strict() -> None:
    context = Context(strict_signatures=True)
    async with AnthropicServer(context=context) as model, client_of(model) as sdk:
        body = asking("x", assistant(thought("p", "foreign"), said("a")), "y")
        assert await refused(sdk, body) == "thinking_signature"


async def test_a_loop_that_the_model_began_without_thinking_may_go_on_with_it(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("fine")
    model.script(reply(call("logs", id="t1")))
    await final(sdk)
    assert (
        await refused(sdk, asking("hello", assistant(use("t1", "logs")), user(result("t1")), **ENABLED)) == ""
    )


async def test_a_paused_message_comes_back_last_and_unchanged(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("fine")
    model.script(reply("looking", server_call("web_search", {"query": "q"}), stop_reason="pause_turn"))
    paused = [block.to_dict() for block in (await sdk.messages.create(**asking())).content]
    assert await refused(sdk, asking("hello", assistant(*paused))) == ""
    assert (
        await refused(sdk, asking("hello", assistant({**paused[0], "text": "look"}, paused[1]))) == "prefill"
    )
    assert await refused(sdk, asking("hello", assistant(*paused), "go on")) == "server_pair"


# Gates, steps and hooks


async def test_a_gate_holds_the_stream_until_it_is_released(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    gate = model.gate("half way")
    model.script(reply("first", gate, "second"))
    asked = asyncio.create_task(final(sdk))
    await gate.reached()
    assert model.last_request.event_names[-1] == "content_block_stop"
    assert model.last_request.is_open
    gate.release()
    assert [block.text for block in (await asked).content] == ["first", "second"]


@pytest.mark.parametrize("before", [0, 3, "content_block_delta", "message_delta", "message_stop"])
async def test_a_gate_stands_between_any_two_events(
    model: AnthropicServer, sdk: AsyncAnthropic, before: int | str
) -> None:
    gate = model.gate("here")
    model.script(reply("hello").held(gate, before=before))
    asked = asyncio.create_task(final(sdk))
    await gate.reached()
    sent = model.last_request.event_names
    assert len(sent) == before if isinstance(before, int) else before not in sent
    gate.release()
    assert (await asked).stop_reason == "end_turn"


async def test_a_gate_that_nobody_reaches_says_so(model: AnthropicServer) -> None:
    with pytest.raises(AssertionError, match="gate 'lonely': no stream reached it in time"):
        await model.gate("lonely").reached(timeout=0.01)


async def test_every_event_can_be_let_through_one_by_one(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.hold_every_event()
    model.script(reply("hello").chunked(5))
    asked = asyncio.create_task(final(sdk))
    seen: list[str] = []
    for expected in ("message_start", "content_block_start", "content_block_delta", "content_block_stop"):
        assert (await model.next_event()).name == expected
        assert model.last_request.event_names == seen
        seen.append((await model.step()).name)
    model.let_events_go()
    assert (await asked).content[0].text == "hello"


async def test_two_held_streams_are_stepped_apart(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.hold_every_event()
    model.reply_always("hello")
    tasks = [asyncio.create_task(final(sdk)) for _ in range(2)]
    first, second = await model.wait_for_requests(2)
    for _ in range(3):
        await model.step(second.number)
    assert (first.events_sent, second.events_sent) == (0, 3)
    model.let_events_go()
    await asyncio.gather(*tasks)


async def test_a_client_that_leaves_while_held_is_noticed(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.hold_every_event()
    model.script("never heard", "heard")
    asked = asyncio.create_task(final(sdk))
    await model.step()
    asked.cancel()
    gone = await model.wait_for(lambda request: request.closed_at)
    assert (gone.events_sent, model.ledger[0].finished) == (1, False)
    model.let_events_go()
    assert (await final(sdk)).content[0].text == "heard"


async def test_a_hook_sees_each_event_before_it_is_sent(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    seen: list[tuple[int, int, str]] = []

    async def hook(request: int, event: int, name: str) -> None:
        assert model.requests[request - 1].events_sent == event
        seen.append((request, event, name))

    model.on_event = hook
    model.script("hi")
    await final(sdk)
    assert seen == [(1, n, name) for n, name in enumerate(model.last_request.event_names)]


async def test_a_paced_stream_takes_its_time(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(reply("hello").paced(0.01))
    await final(sdk)
    finished = model.last_request.finished_ns
    assert finished is not None
    assert finished - model.last_request.arrived_ns > 60_000_000


# Faults


@pytest.mark.parametrize(
    "error, status, kind",
    [
        (overloaded(), 529, "overloaded_error"),
        (rate_limited(), 429, "rate_limit_error"),
        (server_error(), 500, "api_error"),
        (invalid_key(), 401, "authentication_error"),
        (forbidden(), 403, "permission_error"),
        (unknown_model("claude-x"), 404, "not_found_error"),
    ],
)
async def test_an_http_error_comes_as_the_sdk_knows_it(
    model: AnthropicServer, sdk: AsyncAnthropic, error: Any, status: int, kind: str
) -> None:
    model.script(error, "better")
    with pytest.raises(APIStatusError) as caught:
        await final(sdk)
    assert (caught.value.status_code, caught.value.type) == (status, kind)
    assert (await final(sdk)).content[0].text == "better"
    assert [entry.request for entry in model.ledger] == [2]


async def test_the_next_requests_fail_whatever_the_script_holds(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script("at last")
    model.fail_next(2, rate_limited(retry_after=1.5))
    for _ in range(2):
        with pytest.raises(RateLimitError) as caught:
            await final(sdk)
        assert caught.value.response.headers["retry-after"] == "1.5"
    assert (await final(sdk)).content[0].text == "at last"


async def test_the_sdks_own_retries_are_seen_as_requests(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.fail_next(2, rate_limited(retry_after=0.01))
    model.script("at last")
    await sdk.with_options(max_retries=2).messages.create(**asking())
    assert [request.status for request in model.requests] == [429, 429, 200]


@pytest.mark.parametrize("before", [0, 1, 3, "message_stop"])
async def test_a_cut_connection_breaks_the_stream(
    model: AnthropicServer, sdk: AsyncAnthropic, before: int | str
) -> None:
    model.script(reply("hello").cut(before=before))
    events: list[RawMessageStreamEvent] = []
    with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected"):  # noqa: PT012
        stream = await sdk.messages.create(**asking(), stream=True)
        async for event in stream:
            events.append(event)
    assert [event.type for event in events] == model.last_request.event_names
    assert not model.ledger[0].finished
    assert model.last_request.closed_at is None


async def test_a_cut_may_fall_within_an_event(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(reply("hello").cut(before="content_block_delta", after_bytes=40))
    with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected"):
        await streamed(sdk)
    assert model.last_request.event_names == ["message_start", "content_block_start"]


async def test_an_error_event_comes_after_http_200(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(reply("hello").broken(before="content_block_stop"))
    with pytest.raises(APIStatusError) as caught:
        await final(sdk)
    assert caught.value.type == "overloaded_error"
    assert caught.value.response.status_code == 200
    assert model.last_request.event_names[-1] == "error"
    assert not model.ledger[0].finished


@pytest.mark.parametrize("silent", [hang(), reply("hello").stalled(before=2)])
async def test_silence_lasts_until_the_client_leaves(
    model: AnthropicServer, sdk: AsyncAnthropic, silent: Any
) -> None:
    model.script(silent)
    with pytest.raises((APITimeoutError, Exception), match=r"(?i)timed? ?out|^$"):
        await final(sdk.with_options(timeout=0.2))
    assert (await model.wait_for(lambda request: request.closed_at)).is_open is False


async def test_the_server_closes_at_once_although_streams_are_held(sdk: AsyncAnthropic) -> None:
    async with AnthropicServer() as model:
        gate = model.gate("forever")
        model.script(reply("a", gate))
        async with client_of(model) as mine:
            asked = asyncio.create_task(final(mine))
            await gate.reached()
            await model.close()
            with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected|Connection"):
                await asked
        assert model.last_request.closed_at is None


@pytest.mark.parametrize("missing", ["message_stop", "message_delta", "content_block_stop", "message_start"])
async def test_any_event_can_be_missing(model: AnthropicServer, sdk: AsyncAnthropic, missing: str) -> None:
    model.script(reply("hello").lacking(missing))
    names = [event.type for event in await streamed(sdk)]
    assert missing not in names
    assert len(names) > 3


async def test_pings_and_unknown_events_are_mixed_in(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(reply("hello").pinged(every=1).with_unknown_events(every=2))
    await streamed(sdk)
    assert {"ping", "weather_report"} <= set(model.last_request.event_names)
    model.script(reply("hello").pinged(every=1))
    assert (await final(sdk)).content[0].text == "hello"


async def test_a_call_may_be_malformed_in_every_way(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script(
        reply(call("logs", id="t1"), call("logs", id="t1"), call("bash", id="")),
        reply(call("logs", raw='{"app": "sh'), stop_reason="max_tokens"),
        reply("no call", stop_reason="tool_use"),
        reply(call("logs"), stop_reason="end_turn"),
        reply(),
    )
    ids = [block.id for block in (await final(sdk)).content]
    assert ids == ["t1", "t1", ""]
    fragments = [event.delta.partial_json for event in await streamed(sdk) if is_json_delta(event)]
    assert "".join(fragments) == '{"app": "sh'
    assert (await final(sdk)).stop_reason == "tool_use"
    assert (await final(sdk)).stop_reason == "end_turn"
    assert (await final(sdk)).content == []


def is_json_delta(event: Any) -> bool:
    return bool(event.type == "content_block_delta" and event.delta.type == "input_json_delta")


async def test_half_a_surrogate_pair_and_a_megabyte_of_text_arrive(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script(reply("a\ud83d b"), reply("é" * 1_000_000))
    deltas = [event.delta.text for event in await streamed(sdk) if event.type == "content_block_delta"]
    assert "".join(deltas) == "a\ud83d b"
    assert (await final(sdk)).content[0].text == "é" * 1_000_000


# Looking at requests


async def test_a_request_is_kept_as_it_came(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script("ok")
    await final(
        sdk,
        asking(
            "look",
            assistant(use("t1", "logs")),
            user(result("t1", "12 errors", is_error=True), said("hurry up")),
        ),
    )
    request = model.last_request
    assert request.user_texts() == ["look", "hurry up"]
    assert request.ends_with("hurry up")
    assert not request.ends_with("look")
    assert request.calls() == {"t1": "logs"}
    assert (request.tool_results()["t1"].text, request.tool_results()["t1"].is_error) == ("12 errors", True)
    assert request.tools() == ["bash", "logs"]
    assert request.headers["anthropic-version"]
    assert json.loads(request.raw) == request.body
    assert (request.verdict, request.streams) == ("accepted", True)


async def test_waiting_for_a_request_is_bounded_and_shows_what_came(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("ok")
    await final(sdk, asking("the only one"))
    assert await model.wait_for(lambda request: request.ends_with("one")) is model.last_request
    with pytest.raises(AssertionError, match="the only one"):
        await model.wait_for(lambda request: request.ends_with("two"), timeout=0.01)
    with pytest.raises(AssertionError, match="fewer than 2 requests"):
        await model.wait_for_requests(2, timeout=0.01)


async def test_a_broken_off_stream_is_noted_with_its_time(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script(reply("hello").held(model.gate("never"), before="message_delta"))
    async with sdk.messages.stream(**asking()) as stream:
        async for event in stream:
            if event.type == "content_block_stop":
                break
    request = await model.wait_for(lambda request: request.closed_at is not None)
    assert request.closed_at is not None
    assert request.closed_at > request.arrived_ns
    assert request.finished_ns is None


# Cache and ledger


def cached(*messages: Any, system: str = "s" * 400, **more: Any) -> Json:
    return asking(*messages, system=[said(system, **SHORT)], **more)


async def test_a_cached_prefix_is_written_once_and_read_after(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("ok")
    first, second = [(await sdk.messages.create(**cached("hello"))).usage for _ in range(2)]
    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens
    assert (first.cache_creation_input_tokens or 0) > 100
    assert first.input_tokens == second.input_tokens


@pytest.mark.parametrize(
    "changed",
    [cached("hello", system="t" * 400), cached("hello", tools=[tool("bash")]), cached("hello", model=NEWEST)],
    ids=["system", "tools", "model"],
)
async def test_any_change_in_the_prefix_misses_the_cache(
    model: AnthropicServer, sdk: AsyncAnthropic, changed: Json
) -> None:
    model.reply_always("ok")
    await sdk.messages.create(**cached("hello"))
    assert (await sdk.messages.create(**changed)).usage.cache_read_input_tokens == 0


async def test_a_growing_conversation_reads_what_it_wrote(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("ok")
    so_far: list[Any] = []
    written = 0
    for number in range(3):
        so_far.append(user(said(f"message {number} " * 20, **SHORT)))
        usage = (await sdk.messages.create(**asking(*so_far))).usage
        assert usage.cache_read_input_tokens == written
        written += usage.cache_creation_input_tokens or 0
        so_far[-1] = user(said(f"message {number} " * 20))
        so_far.append(assistant(said("ok")))


async def test_an_automatic_breakpoint_marks_the_last_block(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_always("ok")
    await sdk.messages.create(**asking("hello " * 50, **SHORT))
    again = await sdk.messages.create(**asking("hello " * 50, assistant(said("ok")), "more", **SHORT))
    assert (again.usage.cache_read_input_tokens or 0) > 70
    model.cache.forget()
    lost = await sdk.messages.create(**asking("hello " * 50, **SHORT))
    assert lost.usage.cache_read_input_tokens == 0


async def test_an_hours_cache_is_reported_apart(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.reply_always("ok")
    usage = (await sdk.messages.create(**asking(system=[said("s" * 400, **LONG)]))).usage
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_1h_input_tokens == usage.cache_creation_input_tokens
    assert usage.cache_creation.ephemeral_5m_input_tokens == 0


async def test_the_ledger_holds_what_the_sdk_was_told(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    model.script("a long answer", reply("b", usage=Usage(input=7, output=5, cache_read=3, cache_write=2)))
    for _ in range(2):
        usage = (await final(sdk, cached("hello"))).usage
        entry = model.ledger[-1]
        assert entry.finished
        assert entry.usage.input == usage.input_tokens
        assert entry.usage.output == usage.output_tokens
        assert entry.usage.cache_read == usage.cache_read_input_tokens
        assert entry.usage.cache_write == usage.cache_creation_input_tokens
    assert model.spent.output == sum(entry.usage.output for entry in model.ledger)


async def test_a_broken_off_answer_costs_what_had_been_said(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.script(reply("x" * 400).chunked(40).cut(before=4))
    with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected"):
        await streamed(sdk)
    assert (model.ledger[0].usage.output, model.ledger[0].finished) == (20, False)


# The smaller endpoints and the demo


async def test_tokens_are_counted_without_an_answer(model: AnthropicServer, sdk: AsyncAnthropic) -> None:
    body = {key: value for key, value in asking("x" * 400).items() if key != "max_tokens"}
    counted = await sdk.messages.count_tokens(**body)
    assert counted.input_tokens > 100
    with pytest.raises(BadRequestError):
        await sdk.messages.count_tokens(model=MODEL, messages=[])
    assert (model.requests, len(model.other_requests), len(model.refused)) == ([], 2, 1)


async def test_models_are_listed_and_found(sdk: AsyncAnthropic) -> None:
    assert MODEL in [info.id async for info in sdk.models.list()]
    assert (await sdk.models.retrieve(PREFILLS)).max_input_tokens == 200_000
    with pytest.raises(APIStatusError, match="gpt-4"):
        await sdk.models.retrieve("gpt-4")


async def test_the_demo_asks_its_tools_once_and_then_answers(
    model: AnthropicServer, sdk: AsyncAnthropic
) -> None:
    model.reply_with(investigate)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [{"name": name, "input_schema": schema} for name in ("a", "b", "c", "d")]
    first = await final(sdk, asking("why?", tools=tools))
    calls = [block.to_dict() for block in first.content]
    assert [block.input for block in first.content[1:]] == [{"n": 1}] * 3
    answers = user(*[result(block["id"], "42 errors") for block in calls[1:]])
    second = await final(sdk, asking("why?", assistant(*calls), answers, tools=tools))
    assert "(scripted)" in second.content[0].text
    assert "42 errors" in second.content[0].text
    assert not model.refused, model.dump()


async def test_the_demo_runs_alone() -> None:
    root = Path(__file__).parents[2]
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.servers.anthropic", "--port", "0"),
        cwd=root,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        async with asyncio.timeout(10):
            url = (await program.stdout.readline()).decode().split()[-1]
        async with AsyncAnthropic(base_url=url, api_key="any", max_retries=0) as sdk:
            assert "(scripted)" in (await final(sdk, asking("why?"))).content[0].text
    finally:
        program.terminate()
        await program.wait()

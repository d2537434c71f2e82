"""The Model port over the real SDK and wire: every fault is a value, and nothing half-said counts."""

import asyncio
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from bot.model.anthropic import PURPOSE_HEADER, AnthropicModel
from core.call_ids import legalised
from core.generation import Generated, GenerationFailed, GenerationOutcome, StopReason
from core.history import Call, Message, Opaque, Result, Text, user
from core.repair import repaired
from tests.bot.model.transcripts import ASK, TOOLS, request
from tests.servers.anthropic.blocks import (
    call,
    raw_block,
    redacted_thinking,
    server_call,
    server_result,
    text,
    thinking,
)
from tests.servers.anthropic.reply import (
    HttpError,
    Reply,
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
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.anthropic.usage import Usage

STEP = reply(thinking("hm"), "looking", call("logs", {"app": "shop"}), call("metrics"))
SEARCH = server_call("web_search", {"query": "x"}, id="srvtoolu_1")
STEP_EVENTS = ["message_start"] + 19 * ["of a block"] + ["message_delta", "message_stop"]


async def asked(model: AnthropicModel, *history: Message, **more: Any) -> GenerationOutcome:
    return await model.open(request(*(history or (ASK,)), **more)).run()


async def generated(model: AnthropicModel, *history: Message) -> Generated:
    outcome = await asked(model, *history)
    assert isinstance(outcome, Generated), outcome
    return outcome


async def failed(model: AnthropicModel, *history: Message) -> GenerationFailed:
    outcome = await asked(model, *history)
    assert isinstance(outcome, GenerationFailed), outcome
    assert "\n" not in outcome.cause
    return outcome


# What comes back whole


async def test_a_message_comes_back_with_its_calls_and_its_cost(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(replace(STEP, usage=Usage(input=1000, output=100, cache_read=500, cache_write=200)))
    outcome = await generated(model)
    thought, words, *calls = outcome.message.blocks
    assert isinstance(thought, Opaque)
    assert thought.data["signature"]
    assert words == Text("looking")
    assert [(c.name, dict(c.input)) for c in calls if isinstance(c, Call)] == [
        ("logs", {"app": "shop"}),
        ("metrics", {}),
    ]
    assert outcome.stop is StopReason.CALLS
    assert outcome.usage.exact
    assert (outcome.usage.input_tokens, outcome.usage.cache_read_tokens) == (1000, 500)
    # Per million: 2 input, 0.1 cache read, 2.5 cache write, 10 output.
    assert outcome.usage.cost_usd == pytest.approx((1000 * 2 + 500 * 0.1 + 200 * 2.5 + 100 * 10) / 1e6)


async def test_the_cost_of_an_unknown_model_is_unknown(server: AnthropicServer) -> None:
    model = AnthropicModel(
        "claude-unheard-of", api_key="k", base_url=server.url, max_tokens=10, idle_timeout_s=1
    )
    server.script("DNS")
    assert (await generated(model)).usage.cost_usd is None
    await model.close()


@pytest.mark.parametrize(
    "scripted, stop",
    [
        (reply("DNS"), StopReason.END),
        (reply("DNS", stop_reason="stop_sequence", stop_sequence="X"), StopReason.END),
        (reply("DNS", call("logs")), StopReason.CALLS),
        (reply("DNS", stop_reason="max_tokens"), StopReason.LENGTH),
        (refusal("no"), StopReason.REFUSAL),
        (refusal(), StopReason.REFUSAL),
        (reply("DNS", stop_reason="pause_turn"), StopReason.PAUSE),
        (reply("DNS", stop_reason="model_context_window_exceeded"), StopReason.CONTEXT_FULL),
        (reply("DNS", stop_reason="a new one"), StopReason.UNKNOWN),
        (reply("DNS", stop_reason="tool_use"), StopReason.END),
        (reply(), StopReason.END),
    ],
)
async def test_every_stop_reason_is_told(
    server: AnthropicServer, model: AnthropicModel, scripted: Reply, stop: StopReason
) -> None:
    server.script(scripted)
    assert (await generated(model)).stop is stop


@pytest.mark.parametrize(
    "scripted",
    [
        STEP,
        reply(redacted_thinking("xyz"), call("logs")),
        reply(thinking("hm", signature=""), call("logs")),
        reply(*(call("logs", id=given) for given in ("functions.logs:0", "", "a", "a"))),
        reply(call("logs", raw='{"app": "sh'), call("logs", raw="[1]"), call("metrics")),
        reply(call("functions.Bash:0"), call("x" * 90)),
        reply(call("logs", {"app": "a\ud83d", "\0": "\0"})),
        reply("so", call("logs", raw='{"app'), stop_reason="max_tokens"),
        reply(text("cited", citations=[{"type": "char_location", "cited_text": "x"}])),
        reply(SEARCH, server_result("web_search_tool_result", "srvtoolu_1", [])),
        reply("", " \n"),
        refusal("I will not"),
        reply(),
        reply(raw_block({"type": "hologram", "shape": [1]}), "look"),
        reply("Zürich 🔥", call("logs", {"q": "é" * 5000})).chunked(1),
    ],
)
async def test_whatever_it_said_can_be_sent_back(
    server: AnthropicServer, model: AnthropicModel, scripted: Reply
) -> None:
    server.script(scripted, "DNS")
    message, _ = legalised((await generated(model)).message, frozenset())
    await generated(model, *repaired((ASK, message, user(Text("and now?")))))
    assert not server.refused, server.dump()


async def test_an_input_that_cannot_be_read_is_told_beside_its_call(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(reply(call("logs", raw='{"app": "sh', id="a"), call("metrics", id="b")))
    outcome = await generated(model)
    assert [c.id for c in outcome.message.calls] == ["a", "b"]
    assert [(i.call_id, "valid JSON" in i.why) for i in outcome.invalid_calls] == [("a", True)]


async def test_ids_come_as_the_model_gave_them(server: AnthropicServer, model: AnthropicModel) -> None:
    server.script(reply(call("logs", id="a"), call("logs", id="a"), call("logs", id="")))
    assert [c.id for c in (await generated(model)).message.calls] == ["a", "a", ""]


async def test_a_renamed_tool_is_called_by_our_name(server: AnthropicServer, model: AnthropicModel) -> None:
    server.reply_with(lambda got: reply(*(call(name) for name in got.tools())))
    outcome = await generated(model)
    assert {c.name for c in outcome.message.calls} == {tool.name for tool in TOOLS}


# What breaks off


@pytest.mark.parametrize("after_bytes", [0, 25])
async def test_a_stream_cut_at_any_event_was_said_only_once_its_reason_to_stop_was_there(
    server: AnthropicServer, model: AnthropicModel, after_bytes: int
) -> None:
    outcomes = []
    for before in range(len(STEP_EVENTS)):
        server.script(STEP.cut(before=before, after_bytes=after_bytes))
        outcomes.append(await asked(model))
    reason = STEP_EVENTS.index("message_delta")
    broken, whole = outcomes[: reason + 1], outcomes[reason + 1 :]
    assert all(isinstance(o, GenerationFailed) and o.temporary and not o.usage.exact for o in broken)
    assert [len(o.message.calls) for o in whole if isinstance(o, Generated)] == [2]


async def test_the_events_of_that_step_are_as_counted(server: AnthropicServer, model: AnthropicModel) -> None:
    server.script(STEP)
    await generated(model)
    assert len(server.last_request.event_names) == len(STEP_EVENTS)


@pytest.mark.parametrize("place", ["content_block_start", "content_block_stop:1", "message_delta"])
async def test_silence_is_a_temporary_failure(
    server: AnthropicServer, hasty: AnthropicModel, place: str
) -> None:
    server.script(STEP.stalled(before=place))
    outcome = await failed(hasty)
    assert outcome.temporary
    assert outcome.cause == "no byte from the model for 0.3 s"


async def test_silence_behind_the_last_event_harms_nothing(
    server: AnthropicServer, hasty: AnthropicModel
) -> None:
    server.script(STEP.stalled(before="message_stop"), reply("DNS").lacking("message_stop"))
    assert len((await generated(hasty)).message.calls) == 2
    assert (await generated(hasty)).message.text == "DNS"


async def test_no_answer_at_all_is_a_temporary_failure(
    server: AnthropicServer, hasty: AnthropicModel
) -> None:
    server.fail_next(1, hang())
    outcome = await failed(hasty)
    assert outcome.temporary
    assert outcome.usage.input_tokens > 0


async def test_a_slow_answer_that_goes_on_is_read_to_its_end(
    server: AnthropicServer, hasty: AnthropicModel
) -> None:
    server.script(reply("one two three four").paced(0.08))
    began = time.monotonic()
    assert (await generated(hasty)).message.text == "one two three four"
    assert time.monotonic() - began > hasty.idle_timeout_s


@pytest.mark.parametrize("missing", ["message_delta", "content_block_stop", "content_block_start"])
async def test_a_stream_that_lacks_its_terminators_is_a_temporary_failure(
    server: AnthropicServer, model: AnthropicModel, missing: str
) -> None:
    server.script(STEP.lacking(missing))
    assert (await failed(model)).temporary


async def test_pings_and_unknown_events_change_nothing(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.script(STEP, STEP.pinged().with_unknown_events())
    first, second = await generated(model), await generated(model)
    assert first.message.text == second.message.text
    assert len(second.message.calls) == 2


@pytest.mark.parametrize(
    "kind, temporary",
    [
        ("overloaded_error", True),
        ("api_error", True),
        ("rate_limit_error", True),
        ("timeout_error", True),
        ("something_new", True),
        ("invalid_request_error", False),
        ("authentication_error", False),
        ("permission_error", False),
    ],
)
async def test_an_error_in_the_stream_is_told_by_its_type(
    server: AnthropicServer, model: AnthropicModel, kind: str, temporary: bool
) -> None:
    for before in ("message_start", "content_block_delta:1", "message_delta"):
        server.script(STEP.broken(before=before, kind=kind, message="Something is up"))
        outcome = await failed(model)
        assert outcome.temporary is temporary
        assert "Something is up" in outcome.cause


# What the API answers instead


@pytest.mark.parametrize(
    "error, temporary, told",
    [
        (overloaded(), True, "overloaded"),
        (rate_limited(), True, "rate limit"),
        (server_error(), True, "API failed (500)"),
        (HttpError(503, "api_error", "Unavailable"), True, "API failed (503)"),
        (HttpError(408, "timeout_error", "Slow"), True, "API failed (408)"),
        (invalid_key(), False, "set a valid ANTHROPIC_API_KEY"),
        (forbidden(), False, "may not use the model claude-sonnet-5-5"),
        (unknown_model("claude-x"), False, "set [model] name"),
        (HttpError(402, "billing_error", "No money"), False, "check its plan"),
        (HttpError(413, "request_too_large", "Too large"), False, "too large"),
        (
            HttpError(400, "invalid_request_error", "messages.1: bad"),
            False,
            "refused the request (400): messages.1",
        ),
        (
            HttpError(400, "invalid_request_error", "prompt is too long: 209840 tokens > 200000 maximum"),
            False,
            "no longer fits",
        ),
    ],
)
async def test_an_http_error_names_its_mend(
    server: AnthropicServer, model: AnthropicModel, error: HttpError, temporary: bool, told: str
) -> None:
    server.fail_next(1, error)
    outcome = await failed(model)
    assert outcome.temporary is temporary
    assert told in outcome.cause
    assert (outcome.usage.input_tokens, outcome.usage.exact) == (0, True)
    assert len(server.requests) == 1


async def test_the_time_to_wait_is_passed_on(server: AnthropicServer, model: AnthropicModel) -> None:
    server.fail_next(1, rate_limited(7))
    assert (await failed(model)).retry_after_s == 7


async def test_a_server_that_is_not_there_is_a_temporary_failure() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    model = AnthropicModel("claude-sonnet-5-5", api_key="k", base_url=url, max_tokens=10, idle_timeout_s=1)
    outcome = await failed(model)
    assert (outcome.temporary, outcome.cause) == (True, "the model's API cannot be reached")
    assert outcome.usage.exact
    await model.close()


async def test_without_a_key_the_mend_is_named(
    server: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    model = AnthropicModel(
        "claude-sonnet-5-5", api_key=None, base_url=server.url, max_tokens=10, idle_timeout_s=1
    )
    outcome = await failed(model)
    assert (outcome.temporary, outcome.cause) == (False, "no API key for the model; set ANTHROPIC_API_KEY")
    await model.close()


# What is sent


async def test_only_a_side_request_carries_its_purpose(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.reply_always("DNS")
    await asked(model)
    await asked(model, purpose="title")
    purposes = [got.headers.get(PURPOSE_HEADER.lower()) for got in server.requests]
    assert purposes == [None, "title"]
    assert all(got.streams for got in server.requests)


async def test_the_prefix_is_read_from_the_cache(server: AnthropicServer, model: AnthropicModel) -> None:
    server.script(STEP, "DNS")
    message = (await generated(model)).message
    results = user(*(Result(c.id, "5 lines") for c in message.calls))
    await generated(model, ASK, message, results)
    first, second = server.requests
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.cache_read == first.usage.cache_write > 0


# Being cancelled


async def test_being_cancelled_closes_the_connection_and_leaves_an_estimate(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    gate = server.gate("mid")
    usage = Usage(input=1000, output=50)
    server.script(reply("a" * 400, gate, call("logs"), usage=usage))
    generation = model.open(request(ASK))
    running = asyncio.create_task(generation.run())
    await gate.reached()
    await _until(lambda: generation.usage.output_tokens == 100)
    assert generation.doing == "writing"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await server.wait_for(lambda got: got.closed_at is not None)
    assert (generation.usage.input_tokens, generation.usage.output_tokens) == (1000, 100)
    assert not generation.usage.exact
    assert generation.usage.cost_usd == pytest.approx(0.003)


async def _until(holds: Any) -> None:
    async with asyncio.timeout(2):
        while not holds():
            await asyncio.sleep(0.005)


async def test_being_cancelled_before_the_first_byte_closes_the_connection(
    server: AnthropicServer, model: AnthropicModel
) -> None:
    server.fail_next(1, hang())
    generation = model.open(request(ASK))
    running = asyncio.create_task(generation.run())
    await server.wait_for_requests(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await server.wait_for(lambda got: got.closed_at is not None)
    assert generation.usage.input_tokens > 0
    assert not generation.usage.exact


async def test_before_it_is_run_a_request_costs_nothing(model: AnthropicModel) -> None:
    generation = model.open(request(ASK))
    assert (generation.usage.input_tokens, generation.usage.cost_usd) == (0, 0.0)


async def test_many_requests_at_once_do_not_mix(server: AnthropicServer, model: AnthropicModel) -> None:
    server.reply_with(lambda got: got.user_texts()[-1])
    outcomes = await asyncio.gather(*(asked(model, user(Text(f"question {n}"))) for n in range(20)))
    assert [o.message.text for o in outcomes if isinstance(o, Generated)] == [
        f"question {n}" for n in range(20)
    ]


def test_the_sdk_is_not_loaded_before_it_is_needed() -> None:
    """It takes 2 s and 80 MiB, in commands too that never ask a model."""
    program = (
        "import sys, bot.model.anthropic as ours\n"
        "ours.AnthropicModel('m', api_key='k', base_url=None, max_tokens=1, idle_timeout_s=1)\n"
        "sys.exit(sorted({'anthropic', 'genai_prices', 'httpx2'} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

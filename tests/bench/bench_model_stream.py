"""What one streamed event costs us in CPU, beside the bare loop of the SDK in the same run.

The server is a process of its own and sends bytes made beforehand; only this process's CPU time counts.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from bot.model.anthropic import AnthropicModel
from core.generation import Generated, ModelRequest
from core.history import Text, user

EVENTS = 3000
REPEATS = 7
LIMIT = 1.5
ASK = ModelRequest("You are Watchkeeper.", (), (user(Text("why is checkout slow?")),))
TEXT, CALL = "claude-text", "claude-call"
BEGIN: dict[str, dict[str, Any]] = {
    TEXT: {"type": "text", "text": ""},
    CALL: {"type": "tool_use", "id": "toolu_1", "name": "logs", "input": {}},
}


def events(model: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": BEGIN[model]}
    for number in range(EVENTS):
        if model == TEXT:
            delta = {"type": "text_delta", "text": "and then some words "}
        else:
            first, last = ('{"q": "' if not number else ""), ('"}' if number == EVENTS - 1 else "")
            delta = {"type": "input_json_delta", "partial_json": f"{first}twenty characters it is{last}"}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if model == TEXT else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def stream(model: str) -> list[bytes]:
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events(model)]


async def serve() -> None:
    """Answer every request with the stream of its model, one chunk an event, and print the port."""
    chunks = {
        model: b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in stream(model)) + b"0\r\n\r\n"
        for model in BEGIN
    }
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readuntil(b"\r\n\r\n"):
            size = next(
                int(x.split(b":")[1]) for x in line.split(b"\r\n") if x.lower().startswith(b"content-length")
            )
            model = json.loads(await reader.readexactly(size))["model"]
            writer.write(head + chunks[model])
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    program = "import asyncio; from tests.bench.bench_model_stream import serve; asyncio.run(serve())"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.kill()


async def cost_us(run: Callable[[], Awaitable[None]]) -> float:
    began = time.process_time()
    await run()
    return (time.process_time() - began) / EVENTS * 1e6


@pytest.mark.parametrize("name", [TEXT, CALL])
async def test_an_event_costs_no_more_than_half_again_the_bare_loop(name: str) -> None:
    async with served() as url, AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
        model = AnthropicModel(name, api_key="k", base_url=url, max_tokens=100, idle_timeout_s=30)

        async def bare() -> None:
            messages: Any = [{"role": "user", "content": "why is checkout slow?"}]
            async for _ in await client.messages.create(
                model=name, max_tokens=100, messages=messages, stream=True
            ):
                pass

        async def ours() -> None:
            outcome = await model.open(ASK).run()
            assert isinstance(outcome, Generated), outcome

        await bare()
        await ours()
        costs: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(REPEATS):
            costs["bare"].append(await cost_us(bare))
            costs["ours"].append(await cost_us(ours))
        await model.close()
    a, b = statistics.median(costs["bare"]), statistics.median(costs["ours"])
    print(f"\n{name}: SDK loop {a:.1f} µs/event, ours {b:.1f} µs/event, ratio {b / a:.2f} (limit {LIMIT})")
    assert b / a <= LIMIT

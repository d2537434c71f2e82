"""From an accepted request and a scripted step to an HTTP answer."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from tests.servers.anthropic.blocks import Block, dumps
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.ids import Ids
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.pause import Pause
from tests.servers.anthropic.playing import Playing, silence
from tests.servers.anthropic.reply import Break, Cut, HttpError, Reply, Stall
from tests.servers.anthropic.stream import Event
from tests.servers.anthropic.tokens import tokens_in
from tests.servers.anthropic.usage import Usage


def minted(reply: Reply, ids: Ids) -> Reply:
    """With an id for every block that has none yet."""
    parts = [
        part.with_id(ids.new(part.mint)) if isinstance(part, Block) and part.mint is not None else part
        for part in reply.parts
    ]
    return replace(reply, parts=tuple(parts))


def message_of(reply: Reply, request: ModelRequest, usage: Usage, message_id: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.model or request.model,
        "content": [block.full for block in reply.blocks],
        "stop_reason": reply.why_stopped,
        "stop_sequence": reply.stop_sequence,
        "stop_details": reply.stop_details,
        "usage": usage.wire(),
    }


def output_tokens(reply: Reply) -> int:
    return max(sum(tokens_in("".join(piece.text for piece in block.pieces)) for block in reply.blocks), 1)


def output_sent(events: list[Event]) -> int:
    """The tokens of the deltas that went out."""
    deltas = [event.data["delta"] for event in events if event.name == "content_block_delta"]
    return tokens_in("".join(str(value) for delta in deltas for key, value in delta.items() if key != "type"))


def json_answer(
    request: ModelRequest, status: int, body: Any, headers: Mapping[str, str] | None = None
) -> web.Response:
    request.status = status
    raw = dumps(body).encode()
    request.bytes_sent = len(raw)
    request.finished_ns = time.monotonic_ns()
    sent = {"request-id": request.request_id, **(headers or {})}
    return web.Response(status=status, body=raw, content_type="application/json", headers=sent)


def refused(request: ModelRequest, faults: list[Fault]) -> web.Response:
    request.verdict = "refused"
    request.faults = faults
    fault = faults[0]
    headers = {**fault.headers, "x-fault-kind": fault.kind, "x-should-retry": "false"}
    return json_answer(request, fault.status, fault.body(request.request_id), headers)


def failed(request: ModelRequest, error: HttpError) -> web.Response:
    request.verdict = "failed"
    fault = Fault("scripted", error.message, status=error.status, error=error.kind)
    return json_answer(request, error.status, fault.body(request.request_id), error.headers)


async def whole(playing: Playing, reply: Reply, message: Mapping[str, Any]) -> web.StreamResponse:
    """An answer without a stream is one event: all gates hold it, and any fault is a fault of all of it."""
    request = playing.request
    for gate in [part for part in reply.parts if isinstance(part, Gate)]:
        await gate.hold()
    for edit in reply.edits:
        match edit:
            case Stall():
                await silence()
            case Break(kind=kind, message=words):
                return failed(request, HttpError(529 if kind == "overloaded_error" else 500, kind, words))
            case Cut():
                return await half(playing, message)
            case hold:
                await hold.gate.hold()
    pause = Pause(request.number, 0, "message")
    await playing.before(pause)
    pause.sent.set()
    request.event_names.append("message")
    return json_answer(request, 200, message)


async def half(playing: Playing, message: Mapping[str, Any]) -> web.StreamResponse:
    raw = dumps(message).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
    response = web.StreamResponse(headers=headers)
    await response.prepare(playing.http)
    await playing.write(response, raw[: len(raw) // 2])
    playing.hang_up()
    return response

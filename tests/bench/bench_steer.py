"""How long a steer takes while the model generates, beside the bare SDK doing cancel and new request.

`gather_s = 0`. Both are processes of their own and talk to one model server in this process, which sees the
old stream close and the next request arrive. They take turns. Times in the records have 1 ms resolution.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from tests.bench.rig import Serve, line_of, program, quantile, spread, verdict
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.slack import SlackServer
from tests.stories.room import eventually

SAMPLES, WARM_UP = 60, 3
FOR_AT_MOST_S = 40.0
CALM_S = 0.3  # people steer what they have seen: the start's card and receipts are shown by then
AIM_MS = 25.0
CONFIG = """
[worker]
gather_s = 0
[slack]
rate_factor = 100
"""
SPANS = ("event sent → stored", "stored → acknowledged", "stored → decided", "decided → old stream closed",
         "old stream closed → settled", "settled → next request", "decided → next request")  # fmt: skip


def bare_sdk(url: str) -> None:
    """For each line read: break the open stream off, ask anew, and print when it began to do so."""

    async def run() -> None:
        async with AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:

            async def stream(words: str) -> None:
                messages: Any = [{"role": "user", "content": words}]
                async for _ in await client.messages.create(
                    model="claude-sonnet-5-5", max_tokens=100, messages=messages, stream=True
                ):
                    pass

            while await asyncio.to_thread(sys.stdin.readline):  # a round: open, steer, end
                old = asyncio.create_task(stream("bare: hold"))
                await asyncio.to_thread(sys.stdin.readline)
                print(time.monotonic_ns(), flush=True)
                old.cancel()
                await asyncio.wait([old])
                await stream("bare: and the deploy?")

    asyncio.run(run())


class Model:
    """Holds the first stream of each conversation open in the middle, and answers the next request."""

    def __init__(self, server: AnthropicServer) -> None:
        self.server = server
        server.reply_with(self._answer)
        self._held = 0

    def _answer(self, request: ModelRequest) -> Reply:
        if "the deploy" in json.dumps(request.body["messages"]):
            return reply(text("It is the deploy."))
        self._held += 1
        return reply(text("I think it is the "), self.server.gate(f"held {self._held}"), text("database."))

    async def next_held(self, known: int) -> ModelRequest:
        """The request after the first so many, once its stream has begun."""

        async def streams() -> bool:
            requests = self.server.requests
            return len(requests) > known and "content_block_delta" in requests[known].event_names

        await eventually(streams, timeout=20)
        return self.server.requests[known]


def ms(earlier_ns: float, later_ns: float) -> float:
    return (later_ns - earlier_ns) / 1e6


async def bare_round(model: Model, sdk: subprocess.Popen[str]) -> dict[str, float]:
    """One cancel and new request of the bare SDK."""
    assert sdk.stdin is not None
    known = len(model.server.requests)
    sdk.stdin.write("open\n")
    old = await model.next_held(known)
    sdk.stdin.write("steer\n")
    began = int(await asyncio.to_thread(line_of, sdk))
    await model.server.wait_for_requests(known + 2, timeout=20)
    new = model.server.requests[known + 1]
    assert old.closed_at is not None
    return {
        "cancel → old stream closed": ms(began, old.closed_at),
        "cancel → next request": ms(began, new.arrived_ns),
    }


async def our_round(model: Model, slack: SlackServer, serve: Serve) -> dict[str, float]:
    """One steer of one new conversation, and all its moments."""
    known = len(model.server.requests)
    thread = await slack.say("Ana", "#inc", "why is checkout slow?", mention=True)
    old = await model.next_held(known)
    await asyncio.sleep(CALM_S)
    sent_at = time.monotonic_ns()
    reply_ts = await slack.say("Ben", "#inc", "look at the deploy", thread=thread)
    delivery = next(d for d in reversed(slack.deliveries) if d.event.get("ts") == reply_ts)
    async with asyncio.timeout(20):
        await delivery.done.wait()
    acknowledged = time.monotonic_ns()
    await model.server.wait_for_requests(known + 2, timeout=20)
    new = model.server.requests[known + 1]
    await serve.until(f"select count(*) from settlements where reason = 'completed' "
                      f"and conversation_id like '%{thread}'", 1)  # fmt: skip
    assert old.closed_at is not None
    [(stored, decided)] = serve.rows(
        "select received_at, decided_at from inbox where message_ref = ?", reply_ts
    )
    [(settled,)] = serve.rows(
        "select settled_at from settlements where reason = 'steered' and conversation_id like ?", f"%{thread}"
    )
    stored, decided, settled = (at * 1e9 - offset_ns() for at in (stored, decided, settled))
    moments = (
        (sent_at, stored), (stored, acknowledged), (stored, decided), (decided, old.closed_at),
        (old.closed_at, settled), (settled, new.arrived_ns), (decided, new.arrived_ns),
    )  # fmt: skip
    return {span: ms(*pair) for span, pair in zip(SPANS, moments, strict=True)}


def offset_ns() -> float:
    """From the clock of the records to the clock of the moments seen here."""
    return time.time_ns() - time.monotonic_ns()


@pytest.mark.timeout(90)
async def test_a_steer_while_generating(tmp_path: Path) -> None:
    ours: list[dict[str, float]] = []
    bare: list[dict[str, float]] = []
    async with SlackServer() as slack, AnthropicServer() as server:
        model = Model(server)
        serve = Serve(tmp_path, environment(slack, server), CONFIG)
        code = f"from tests.bench.bench_steer import bare_sdk; bare_sdk({server.url!r})"
        with program("-c", code) as sdk:
            try:
                await serve.start()
                await slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=10)
                ends = time.monotonic() + FOR_AT_MOST_S
                while len(ours) < WARM_UP + SAMPLES and time.monotonic() < ends:
                    bare.append(await bare_round(model, sdk))
                    ours.append(await our_round(model, slack, serve))
            finally:
                serve.stop()
        assert not server.refused, server.dump()
    tell(bare[WARM_UP:], ours[WARM_UP:])


def environment(slack: SlackServer, model: AnthropicServer) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": slack.bot_token,
        "SLACK_APP_TOKEN": slack.app_token,
        "SLACK_API_URL": slack.api_url,
        "ANTHROPIC_BASE_URL": model.url,
    }


def tell(bare: Sequence[Mapping[str, float]], ours: Sequence[Mapping[str, float]]) -> None:
    print(f"\n{len(ours)} steers while the model generates, in turns with the bare SDK:")
    for name, rounds in (("bare SDK", bare), ("ours", ours)):
        for span in rounds[0]:
            print(f"  {name + ': ' + span:<40} {spread([one[span] for one in rounds])}")
    beyond = [statistics.median(one["decided → next request"] for one in ours),
              quantile([one["decided → next request"] for one in ours], 0.99)]  # fmt: skip
    floor = [statistics.median(one["cancel → next request"] for one in bare),
             quantile([one["cancel → next request"] for one in bare], 0.99)]  # fmt: skip
    print(f"  beyond the bare SDK: p50 {beyond[0] - floor[0]:.1f} ms, p99 {beyond[1] - floor[1]:.1f} ms")
    print(" ", verdict("p50 beyond the bare SDK", beyond[0] - floor[0], AIM_MS, " ms"))

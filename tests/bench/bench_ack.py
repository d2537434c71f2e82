"""How long Slack waits for our acknowledgement over HTTP, beside Bolt with an empty handler in the same run.

Ours has stored the event durably by then; Bolt has only read it. Servers are processes of their own, loaded
in turns by the same client, which opens a connection for each event.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult

from bot.web.listening import BACKLOG
from tests.bench.rig import Serve, encoded, line_of, program, quantile, spread, verdict
from tests.servers.slack.http_events import HttpEvents
from tests.servers.slack.server import SIGNING_SECRET
from tests.servers.slack.workspace import APP, BOT_USER, TEAM
from tests.stories.room import free_port

BURST, ROUNDS = 500, 3
RATE, RATE_S = 200, 5.0
QUIET_WITHIN_S = 8.0  # our work on one round may end before Bolt is measured again
MENTIONS_EVERY = 10  # one event in so many is a mention in a channel, the others are replies in threads
RATIO_AIM, RATE_AIM_MS, SLACK_WAITS_S = 2.5, 100.0, 3.0
WAITING = "select count(*) from inbox where fate = 'waiting'"
STORED = "select count(*) from inbox where source in ('mention', 'thread_reply')"
_numbers = itertools.count(1)


def event(thread: str | None) -> bytes:
    """One event as Slack words it: a reply in this thread, or a mention at top level."""
    number = next(_numbers)
    ts = f"{int(time.time())}.{number:06d}"
    message: dict[str, Any] = {"user": "U0ANA00001", "ts": ts, "channel": "C0INC00001", "event_ts": ts}
    said = f"and what about the deploy, number {number}?"
    runs: list[dict[str, Any]] = [{"type": "text", "text": said}]
    if thread is None:
        message |= {"type": "app_mention", "text": f"<@{BOT_USER}> {said}"}
        runs.insert(0, {"type": "user", "user_id": BOT_USER})
    else:
        message |= {"type": "message", "text": said, "thread_ts": thread, "channel_type": "channel"}
    section = {"type": "rich_text_section", "elements": runs}
    message["blocks"] = [{"type": "rich_text", "elements": [section]}]
    authorization = {"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "enterprise_id": None}
    return encoded(
        {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": message,
            "event_id": f"Ev{number:09d}",
            "event_time": int(time.time()),
            "authorizations": [authorization],
        }
    )


def request(body: bytes, port: int) -> bytes:
    """The bytes of the signed POST."""
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **HttpEvents(SIGNING_SECRET, SLACK_WAITS_S).signed(body),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /slack/events HTTP/1.1\r\n{head}\r\n".encode() + body


async def acknowledged(port: int, sent: bytes) -> float:
    """Send one event; milliseconds until the 200 is there."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        answer = await reader.readline()
        took = (time.perf_counter() - began) * 1000
    finally:
        writer.close()
        await writer.wait_closed()
    assert b" 200 " in answer, answer
    return took


async def burst(port: int, threads: list[str]) -> list[float]:
    """All at once."""
    ready = [request(body, port) for body in itertools.islice(events(threads), BURST)]
    return list(await asyncio.gather(*(acknowledged(port, one) for one in ready)))


async def steadily(port: int, threads: list[str]) -> list[float]:
    """So many a second, each at its time whether or not the ones before are answered."""
    ready = [request(body, port) for body in itertools.islice(events(threads), int(RATE * RATE_S))]
    began, waiting = time.perf_counter(), []
    for number, one in enumerate(ready):
        await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        waiting.append(asyncio.create_task(acknowledged(port, one)))
    return list(await asyncio.gather(*waiting))


def events(threads: list[str]) -> Iterator[bytes]:
    """A mixture: mostly replies in these threads, now and then a mention."""
    for number in itertools.count():
        yield event(None if number % MENTIONS_EVERY == 0 else threads[number % len(threads)])


def serve_bolt(port: int) -> None:
    """Bolt as its pages show it: the same checks of signature and origin, and a handler that does nothing."""

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=TEAM, bot_user_id=BOT_USER, bot_id="B0WATCH001")

    app = AsyncApp(signing_secret=SIGNING_SECRET, authorize=authorize)

    @app.event("message")
    @app.event("app_mention")
    async def nothing() -> None: ...

    web.run_app(app.web_app("/slack/events"), host="127.0.0.1", port=port, backlog=BACKLOG, access_log=None)


@asynccontextmanager
async def bolt() -> AsyncIterator[int]:
    port = free_port()
    code = f"from tests.bench.bench_ack import serve_bolt; serve_bolt({port})"
    with program("-c", code) as process:
        await asyncio.to_thread(line_of, process)  # "Running on …"
        yield port


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Serve]:
    with (
        program("-m", "tests.servers.slack", "--port", "0") as slack,
        program("-c", INSTANT_MODEL) as model,
    ):
        environment = dict(line_of(slack).split("=", 1) for _ in range(4))
        del environment["SLACK_APP_TOKEN"]
        environment["ANTHROPIC_BASE_URL"] = line_of(model)
        serve = Serve(folder, environment)
        try:
            await serve.start()
            yield serve
        finally:
            serve.stop()


INSTANT_MODEL = """
import asyncio
from tests.servers.anthropic.blocks import text
from tests.servers.anthropic.reply import reply
from tests.servers.anthropic.server import AnthropicServer

async def main():
    async with AnthropicServer() as model:
        model.reply_always(reply(text("it is the deploy")))
        print(model.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def open_threads(serve: Serve, count: int = 5) -> list[str]:
    """Some conversations that exist."""
    for _ in range(count):
        body = event(None)
        await acknowledged(serve.port, request(body, serve.port))
    found = serve.rows("select thread from conversations")
    return [str(thread) for (thread,) in found]


@pytest.mark.timeout(90)
async def test_acknowledging(tmp_path: Path) -> None:
    async with bolt() as bolt_port, ours(tmp_path) as serve:
        threads = await open_threads(serve)
        sent = len(threads)
        await burst(bolt_port, threads)  # both are warm when it counts
        await burst(serve.port, threads)
        sent += BURST
        bursts: dict[str, list[list[float]]] = {"bolt": [], "ours": []}
        for _ in range(ROUNDS):
            await serve.until(WAITING, 0, QUIET_WITHIN_S)
            bursts["bolt"].append(await burst(bolt_port, threads))
            bursts["ours"].append(await burst(serve.port, threads))
            sent += BURST
        await serve.until(WAITING, 0, QUIET_WITHIN_S)
        rates = {"bolt": await steadily(bolt_port, threads), "ours": await steadily(serve.port, threads)}
        sent += len(rates["ours"])
        stored = int(serve.rows(STORED)[0][0])

    print(f"\n{BURST} events at once, {ROUNDS} rounds each, in turns:")
    for name, rounds in bursts.items():
        print(f"  {name}: " + " | ".join(f"{spread(one)} max {max(one):6.1f}" for one in rounds))
    ratio = statistics.median(
        quantile(mine, 0.99) / quantile(bare, 0.99)
        for bare, mine in zip(bursts["bolt"], bursts["ours"], strict=True)
    )
    print(" ", verdict("median ratio of p99", ratio, RATIO_AIM))
    print(" ", verdict("slowest", max(map(max, bursts["ours"])) / 1000, SLACK_WAITS_S, " s"))
    print(f"{RATE} events a second for {RATE_S:g} s:")
    for name, times in rates.items():
        print(f"  {name}: {spread(times)} max {max(times):6.1f}")
    print(" ", verdict("p99", quantile(rates["ours"], 0.99), RATE_AIM_MS, " ms"))
    print(f"acknowledged {sent}, stored {stored}")
    assert stored == sent, "an event was acknowledged and is not stored"

"""The composition root: the one place that builds concrete things and puts them together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot import schedule
from bot.errors import Permanent, Temporary, Unusable
from bot.flow.accept import Acceptor
from bot.flow.bells import Bells
from bot.flow.decide import Decider
from bot.flow.deliver import Deliverer
from bot.flow.keep_cards import CardKeeper
from bot.flow.reap import Reaper
from bot.flow.receipts import ReceiptKeeper
from bot.flow.supervise import forever
from bot.flow.turn_loop import Limits, Surroundings
from bot.flow.worker import Worker, WorkLimits
from bot.model.anthropic import AnthropicModel
from bot.model.instructions import instructions
from bot.process_lock import ProcessLock
from bot.settings import Settings
from bot.slack.api import SlackApi, web_client
from bot.slack.budget import Budget
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from bot.slack.http import slack_events_handler
from bot.slack.listen import slack_app
from bot.slack.socket import SocketMode
from bot.tools.mcp import McpProvider
from bot.tools.mcp_transport import McpEntry
from bot.tools.prometheus import PrometheusProvider
from bot.tools.provider import Provider
from bot.tools.registry import ToolBox
from bot.web.server import Server, make_app
from core.redaction import Redactor
from storage import conversations, schema
from storage.engine import Database

log = structlog.get_logger()

MAX_ANSWER_TOKENS = 8_192
LAST_WORDS_S = 3.0
"""After the drain, cards and answers that are due get so long; the rest is shown after the next start."""

REJECTED = frozenset({"invalid_auth", "not_authed", "token_revoked", "account_inactive", "token_expired"})


async def serve(settings: Settings) -> int:
    """Run the Slack bot until a signal ends it; returns the exit code. Raises Unusable with the mend."""
    async with AsyncExitStack() as stack:
        await schema.upgrade(settings.database_url)
        _hold_database(settings, stack)
        database = await Database.open(settings.database_url)
        stack.push_async_callback(database.close)
        return await _Service(settings, database, stack).run()


def _hold_database(settings: Settings, stack: AsyncExitStack) -> None:
    if settings.env.database.path is not None:
        lock = ProcessLock(settings.env.database.path)
        lock.take()
        stack.callback(lock.release)


class _Service:
    """Everything that one `serve` process holds, from its start to its end."""

    def __init__(self, settings: Settings, database: Database, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._database = database
        self._stack = stack
        self._redactor = Redactor(settings.secrets())
        self._bells = Bells()
        self._worker_name = f"{socket.gethostname()}:{os.getpid()}"
        self._ended = asyncio.Event()
        self._began_empty = False
        self._tasks: list[asyncio.Task[None]] = []
        self._tools = self._build_tools()
        self._model = self._build_model()
        budget = Budget(factor=settings.file.slack.rate_factor)
        self._connection = Connection(SlackApi(self._slack_client(), budget))
        self._chat = SlackChat(self._connection, link_hosts=frozenset(settings.file.slack.link_hosts))
        self._reaper = self._build_reaper()
        self._acceptor = Acceptor(
            database, self._bells, self._redactor.redact, self._reaper.release_lost_card
        )
        self._app = slack_app(
            accept=self._acceptor.accept, connection=self._connection, signing_secret=self._signing_secret
        )
        self._socket = self._build_socket()
        self._worker = Worker(self._surroundings(), self._chat, self._work_limits())
        self._cards = CardKeeper(database, self._bells, self._chat, settings.file.card.min_interval_s)
        self._deliverer = Deliverer(database, self._bells, self._chat)

    async def run(self) -> int:
        """From the first check to the last word."""
        self._listen_to_signals()
        self._began_empty = await self._database.read(conversations.is_empty)  # before anything comes in
        self._stack.push_async_callback(self._chat.close)
        server = await self._start_web()
        self._stack.push_async_callback(server.close)
        await self._connect_or_refuse()
        await self._tools.start()
        self._stack.push_async_callback(self._tools.close)
        self._stack.push_async_callback(self._model.close)
        if self._database.is_sqlite:
            await self._database.write(conversations.end_all_leases)
        await self._reaper.settle_dead_turns()
        self._start_loops()
        scheduler = schedule.started(self._jobs())
        log.info("serving", worker=self._worker_name, address=":".join(map(str, server.address)))
        await self._ended.wait()
        scheduler.shutdown(wait=False)
        await self._end()
        return 0

    # --- building -------------------------------------------------------------------------------------------

    @property
    def _signing_secret(self) -> str:
        secret = self._settings.env.slack_signing_secret
        return secret.get_secret_value() if secret else ""

    def _slack_client(self) -> AsyncWebClient:
        token = self._settings.env.slack_bot_token
        if token is None:
            raise Unusable("SLACK_BOT_TOKEN is not set")
        return web_client(token.get_secret_value(), self._settings.env.slack_api_url)

    def _build_socket(self) -> SocketMode | None:
        token = self._settings.env.slack_app_token
        if token is None:
            return None
        return SocketMode(self._app, token.get_secret_value(), self._settings.env.slack_api_url)

    def _build_tools(self) -> ToolBox:
        sections = self._settings.file
        providers: list[Provider] = [
            McpProvider(McpEntry(**entry.model_dump()), self._redactor) for entry in sections.mcp
        ]
        if sections.tools.prometheus.url:
            providers.append(PrometheusProvider(sections.tools.prometheus.url))
        return ToolBox(providers, self._redactor, sections.tools.overrides())

    def _build_model(self) -> AnthropicModel:
        env, section = self._settings.env, self._settings.file.model
        return AnthropicModel(
            section.name,
            api_key=env.anthropic_api_key.get_secret_value() if env.anthropic_api_key else None,
            base_url=env.anthropic_base_url,
            max_tokens=MAX_ANSWER_TOKENS,
            idle_timeout_s=section.idle_timeout_s,
        )

    def _build_reaper(self) -> Reaper:
        return Reaper(
            self._database,
            self._bells,
            self._chat,
            self._worker_name,
            self._settings.file.worker.resume_within_s,
        )

    def _surroundings(self) -> Surroundings:
        worker, card = self._settings.file.worker, self._settings.file.card
        return Surroundings(
            database=self._database,
            bells=self._bells,
            model=self._model,
            tools=self._tools,
            instructions=instructions().text,
            redact=self._redactor.redact,
            limits=Limits(
                poll_s=worker.poll_s,
                turn_limit_s=worker.turn_limit_s,
                retry_for_s=self._settings.file.model.retry_for_s,
                card_interval_s=card.min_interval_s,
            ),
            worker=self._worker_name,
            draining=lambda: self._worker.draining,
        )

    def _work_limits(self) -> WorkLimits:
        worker = self._settings.file.worker
        return WorkLimits(worker.max_turns, worker.lease_s, worker.gather_s, worker.resume_within_s)

    # --- starting -------------------------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        """The first signal drains; a second one exits at once."""
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            if self._ended.is_set():
                os._exit(128 + number)
            log.info("draining", signal=number.name)
            self._ended.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number)
            self._stack.callback(loop.remove_signal_handler, number)

    async def _start_web(self) -> Server:
        handler = None
        if self._socket is None:
            handler = slack_events_handler(self._app, signing_secret=self._signing_secret)
        app = make_app(reasons=self._not_ready, slack_events=handler)
        return await Server.start(app, host=self._settings.env.host, port=self._settings.env.port)

    def _not_ready(self) -> list[str]:
        reasons = []
        if self._ended.is_set():
            reasons.append("draining: this process is shutting down")
        if self._connection.identity is None:
            reasons.append(self._connection.reason)
        elif self._socket is not None and not self._socket.connected:
            reasons.append(self._socket.reason)
        return reasons

    async def _connect_or_refuse(self) -> None:
        """A rejected token ends the start; a Slack that cannot be reached is tried on in the background."""
        try:
            await self._connect()
        except Temporary as error:
            log.warning("slack_unreachable", error=str(error))
            self._keep("connect to Slack", self._connect_some_time)

    async def _connect(self) -> None:
        try:
            await self._connection.connect()
        except Permanent as error:
            raise _rejected("SLACK_BOT_TOKEN", error) from None
        if self._socket is not None:
            try:
                await self._socket.start()
            except Permanent as error:
                raise _rejected("SLACK_APP_TOKEN", error) from None
        if self._began_empty:
            self._keep_once("lost cards", self._reaper.release_lost_cards(time.time()))

    async def _connect_some_time(self) -> None:
        pause = 1.0
        while self._connection.identity is None:
            await asyncio.sleep(pause)
            pause = min(30.0, pause * 2)
            try:
                await self._connect()
            except Temporary as error:
                log.warning("slack_unreachable", error=str(error))
            except Unusable as error:
                log.error("slack_rejects_us", error=str(error))
        await asyncio.Event().wait()

    def _start_loops(self) -> None:
        file = self._settings.file
        decider = Decider(
            self._database,
            self._bells,
            self._chat,
            policy=self._settings.policy,
            responders=frozenset(file.slack.responders),
            poll_s=file.worker.poll_s,
        )
        receipts = ReceiptKeeper(self._database, self._bells, self._chat)
        for name, loop in (
            ("decide", decider.run),
            ("work", self._worker.run),
            ("renew leases", self._worker.renew_leases),
            ("keep cards", self._cards.run),
            ("deliver", self._deliverer.run),
            ("receipts", receipts.run),
        ):
            self._keep(name, loop)

    def _jobs(self) -> tuple[schedule.Job, ...]:
        reaper = self._settings.file.reaper

        async def sweep() -> None:
            await self._reaper.sweep_cards(reaper.card_grace_s)

        return (
            schedule.Job("settle dead turns", reaper.every_s, self._reaper.settle_dead_turns),
            schedule.Job("sweep cards", reaper.every_s, sweep),
        )

    def _keep(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(forever(name, loop), name=name))

    def _keep_once(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    # --- ending ---------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Drain: no new turn, running ones are cut at safe points, what is due is shown, then silence."""
        if self._socket is not None:
            self._stack.push_async_callback(self._socket.close)
        left = await self._worker.drain(self._settings.file.worker.drain_timeout_s)
        for keeper in (self._deliverer, self._cards):
            try:
                await keeper.settle_down(LAST_WORDS_S)
            except TimeoutError:
                log.info("left_for_the_next_start", keeper=type(keeper).__name__)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reaper.close()
        log.info("drained", turns_left_to_their_lease=left)


def _rejected(variable: str, error: Permanent) -> Exception:
    if error.code in REJECTED:
        return Unusable(
            f"{variable}: Slack rejects the token ({error.code}); copy it anew from the app's settings"
        )
    return Temporary(str(error))

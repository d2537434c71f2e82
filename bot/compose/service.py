"""The service: worker, scheduled jobs, cards and answers, on whichever platform it is given."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack

import structlog

from bot import schedule
from bot.compose.database import opened
from bot.compose.model import build_model
from bot.compose.platform import Inside, Platform
from bot.compose.shared import build_bells
from bot.compose.tools import build_tools
from bot.errors import Temporary, Unusable
from bot.flow.accept import Acceptor
from bot.flow.claiming import Claims
from bot.flow.decide import Decider
from bot.flow.deliver import Deliverer
from bot.flow.keep_cards import CardKeeper
from bot.flow.look_around import LookAround
from bot.flow.reap import Reaper
from bot.flow.receipts import ReceiptKeeper
from bot.flow.supervise import forever
from bot.flow.turn_loop import Limits, Surroundings
from bot.flow.watch_fleet import FleetWatcher
from bot.flow.worker import Worker, WorkLimits
from bot.measures import Measures
from bot.model.instructions import instructions
from bot.process_lock import ProcessLock
from bot.settings import Settings
from bot.web.server import Server, make_app
from core.redaction import Redactor
from storage import conversations
from storage.engine import Database
from storage.lookout import Lookout

log = structlog.get_logger()

FORGET_CLAIMS_EVERY_S = 3_600.0

LAST_WORDS_S = 3.0
"""After the drain, cards and answers that are due get so long; the rest is shown after the next start."""


async def run(settings: Settings, platform: Platform, listener: socket.socket | None = None) -> int:
    """Run until a signal ends it; returns the exit code. Raises Unusable with the mend."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(platform.chat.close)
        _hold_database(settings, stack)
        database = await opened(settings, listener)
        stack.push_async_callback(database.close)
        return await _Service(settings, platform, database, stack).run(listener)


def _hold_database(settings: Settings, stack: AsyncExitStack) -> None:
    if settings.env.database.path is not None:
        lock = ProcessLock(settings.env.database.path)
        lock.take()
        stack.callback(lock.release)


def worker_name() -> str:
    """A name that no other process has or will have: containers restart with the same host and pid."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}:{secrets.token_hex(3)}"


class _Service:
    """Everything that one process holds, from its start to its end."""

    def __init__(
        self, settings: Settings, platform: Platform, database: Database, stack: AsyncExitStack
    ) -> None:
        self._settings = settings
        self._platform = platform
        self._database = database
        self._stack = stack
        self._measures = Measures()
        database.retried = self._measures.database_retried
        self._fleet = FleetWatcher(database, self._measures)
        self._redactor = Redactor(settings.secrets())
        self._bells = build_bells(settings)
        # A container that is started again has the same host name and process id, and is another one.
        self._worker_name = worker_name()
        self._ended = asyncio.Event()
        self._began_empty = False
        self._connected = False
        self._tasks: list[asyncio.Task[None]] = []
        self._tools = build_tools(settings, self._redactor)
        self._model = build_model(settings)
        self._reaper = self._build_reaper()
        acceptor = Acceptor(database, self._bells, self._redactor.redact, self._reaper.release_lost_card)
        platform.open(Inside(acceptor.accept, database, self._model.name, self._measures))
        self._worker = Worker(self._surroundings(), platform.chat, self._work_limits())
        self._claims = Claims(database, self._worker_name)
        self._cards = CardKeeper(
            database,
            self._bells,
            platform.chat,
            self._claims,
            min_interval_s=self._card_interval_s,
            measures=self._measures,
        )
        self._deliverer = Deliverer(database, self._bells, platform.chat, self._claims, self._measures)
        self._lookout = self._build_lookout()
        self._look = LookAround(self._lookout, database, self._bells, settings.file.worker.poll_s)

    async def run(self, listener: socket.socket | None) -> int:
        """From the first check to the last word."""
        self._listen_to_signals()
        self._began_empty = await self._database.read(conversations.is_empty)  # before anything comes in
        self._stack.push_async_callback(self._fleet.close)
        server = await self._start_web(listener)
        self._stack.push_async_callback(server.close)
        await self._connect_or_refuse()
        await self._tools.start()
        self._stack.push_async_callback(self._tools.close)
        self._stack.push_async_callback(self._model.close)
        if self._database.is_sqlite:
            await self._database.write(conversations.end_all_leases)
        await self._reaper.settle_dead_turns()
        self._stack.push_async_callback(self._lookout.close)
        self._start_loops()
        gc.freeze()  # else each full collection walks all that is loaded, and stops everything for 0.3 s
        self._stack.callback(gc.unfreeze)
        scheduler = schedule.started(self._jobs())
        log.info("serving", worker=self._worker_name, address=":".join(map(str, server.address)))
        await self._ended.wait()
        scheduler.shutdown(wait=False)
        await self._end()
        return 0

    # --- building -------------------------------------------------------------------------------------------

    @property
    def _card_interval_s(self) -> float:
        section, quick = self._settings.file.card, self._platform.card_interval_s
        said = "min_interval_s" in section.model_fields_set
        return section.min_interval_s if said or quick is None else quick

    def _build_reaper(self) -> Reaper:
        return Reaper(
            self._database,
            self._bells,
            self._platform.chat,
            self._worker_name,
            self._settings.file.worker.resume_within_s,
            measures=self._measures,
        )

    def _build_lookout(self) -> Lookout:
        return Lookout(
            self._database,
            self._worker_name,
            card_interval_s=self._card_interval_s,
            card_grace_s=self._settings.file.reaper.card_grace_s,
        )

    def _surroundings(self) -> Surroundings:
        worker = self._settings.file.worker
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
                card_interval_s=self._card_interval_s,
            ),
            worker=self._worker_name,
            draining=lambda: self._worker.draining,
            measures=self._measures,
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

    async def _start_web(self, listener: socket.socket | None) -> Server:
        app = make_app(
            reasons=self._not_ready,
            measures=self._measures,
            refresh=self._fleet.refresh,
            add_routes=self._platform.add_routes,
        )
        env = self._settings.env
        return await Server.start(app, host=env.host, port=env.port, listener=listener)

    def _not_ready(self) -> list[str]:
        draining = ["draining: this process is shutting down"] if self._ended.is_set() else []
        return [*draining, *self._platform.reasons(), *self._lookout.reasons(), *self._bells.reasons()]

    async def _connect_or_refuse(self) -> None:
        """A platform that rejects us ends the start; one out of reach is tried on in the background."""
        try:
            await self._connect()
        except Temporary as error:
            log.warning("platform_unreachable", error=str(error))
            self._keep("connect", self._connect_some_time)

    async def _connect(self) -> None:
        await self._platform.connect()
        self._connected = True
        if self._began_empty:
            self._keep_once("lost cards", self._reaper.release_lost_cards(time.time()))

    async def _connect_some_time(self) -> None:
        pause = 1.0
        while not self._connected:
            await asyncio.sleep(pause)
            pause = min(30.0, pause * 2)
            try:
                await self._connect()
            except Temporary as error:
                log.warning("platform_unreachable", error=str(error))
            except Unusable as error:
                log.error("platform_rejects_us", error=str(error))
        await asyncio.Event().wait()

    def _start_loops(self) -> None:
        decider = Decider(
            self._database,
            self._bells,
            self._platform.chat,
            policy=self._settings.policy,
            responders=self._platform.responders,
        )
        receipts = ReceiptKeeper(
            self._database, self._bells, self._platform.chat, self._claims, self._measures
        )
        for name, loop in (
            ("listen to bells", self._bells.listen),
            ("decide", decider.run),
            ("work", self._worker.run),
            ("renew leases", self._worker.renew_leases),
            ("watch leases", self._worker.watch_leases),
            ("let go", self._worker.let_go),
            ("reap", self._reaper.run),
            ("claims", self._claims.run),
            ("look around", self._look.run),
            ("keep cards", self._cards.run),
            ("deliver", self._deliverer.run),
            ("receipts", receipts.run),
            ("watch the loop", self._measures.watch_loop),
        ):
            self._keep(name, loop)

    def _jobs(self) -> tuple[schedule.Job, ...]:
        reaper = self._settings.file.reaper

        async def settle_dead_turns() -> None:
            if self._look.seen is None or self._look.seen.dead_turns:
                await self._reaper.settle_dead_turns()

        async def sweep_cards() -> None:
            if self._look.seen is None or self._look.seen.late_cards:
                await self._reaper.sweep_cards(reaper.card_grace_s)

        return (
            schedule.Job("settle dead turns", reaper.every_s, settle_dead_turns),
            schedule.Job("sweep cards", reaper.every_s, sweep_cards),
            schedule.Job("forget lapsed claims", FORGET_CLAIMS_EVERY_S, self._reaper.forget_lapsed_claims),
        )

    def _keep(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(forever(name, loop), name=name))

    def _keep_once(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    # --- ending ---------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Drain: no new turn, running ones are cut at safe points, what is due is shown, then silence."""
        self._stack.push_async_callback(self._platform.close)
        left = await self._worker.drain(self._settings.file.worker.drain_timeout_s)
        for keeper in (self._deliverer, self._cards):
            try:
                await keeper.settle_down(LAST_WORDS_S)
            except TimeoutError:
                log.info("left_for_the_next_start", keeper=type(keeper).__name__)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._claims.give_back_all()
        await self._reaper.close()
        log.info("drained", turns_left_to_their_lease=left)

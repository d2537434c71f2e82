"""The faults of the matrix: how each strikes, and how soon the work must have gone on."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.fleet import servers
from tests.fleet.fleet import SHORT_LEASE_S, Arrangement, Fleet
from tests.fleet.laws import Row
from tests.fleet.member import Member
from tests.fleet.phases import Phase
from tests.fleet.taken_over import rows_of_taken_over
from tests.servers.postgres_wire import Lost
from tests.servers.proxy import Direction

AS_USUAL = Arrangement()
SHORT_LEASE = Arrangement(lease_s=SHORT_LEASE_S)

SURVIVES_S = SHORT_LEASE_S + 2.0
"""So long a frozen or cut-off process must have been replaced at the latest."""

AWAKE_S = 2.0
"""So long one that woke is watched before anything else is judged."""


@dataclass
class Struck:
    """One strike, and what is remembered of it."""

    fleet: Fleet
    victim: Member
    chance: random.Random
    at: float = field(default_factory=time.time)
    woke_at: float | None = None
    rows_when_it_woke: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the matrix. `within_s`: by then each turn that was struck has gone on."""

    name: str
    strike: Callable[[Struck], Coroutine[Any, Any, None]]
    within_s: float
    phases: tuple[Phase, ...]
    arrangement: Arrangement = AS_USUAL
    of_one: bool = True
    """Whether it strikes one process, whose turns are then counted, or what all of them use."""
    exits_with: int | None = None
    """With which code the victim must have ended."""


# --- strikes ------------------------------------------------------------------------------------------------


async def kill(struck: Struck) -> None:
    """kill -9."""
    struck.victim.process.kill()
    await struck.victim.process.wait()


async def terminate(struck: Struck) -> None:
    """SIGTERM, as an orchestrator does."""
    struck.victim.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        await struck.victim.process.wait()


async def freeze(struck: Struck) -> None:
    """SIGSTOP for longer than the lease, then SIGCONT."""
    struck.victim.process.send_signal(signal.SIGSTOP)
    await _taken_over(struck)
    struck.victim.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(AWAKE_S)


async def partition(struck: Struck) -> None:
    """Its Postgres is a black hole for longer than the lease; Slack and the model stay within reach."""
    struck.victim.postgres.black_hole()
    await _taken_over(struck)
    struck.victim.postgres.pass_on()
    await asyncio.sleep(AWAKE_S)


async def half_open(struck: Struck) -> None:
    """What it asks of Postgres arrives, and no answer comes back, for longer than the lease."""
    struck.victim.postgres.hold(Direction.TO_CLIENT)
    await _taken_over(struck)
    struck.victim.postgres.pass_on()
    await asyncio.sleep(AWAKE_S)


async def _taken_over(struck: Struck) -> None:
    await asyncio.sleep(SURVIVES_S)
    struck.rows_when_it_woke = await rows_of_taken_over(struck.fleet, struck.victim, struck.at)
    struck.woke_at = time.time()


async def reset_connections(struck: Struck) -> None:
    """RST to all of its connections to Postgres."""
    struck.victim.postgres.reset()


async def refuse_connections(struck: Struck) -> None:
    """Its connections to Postgres end, and no new one is taken for a while."""
    struck.victim.postgres.refuse()
    await asyncio.sleep(struck.chance.uniform(0.3, SHORT_LEASE_S / 2))
    struck.victim.postgres.pass_on()


async def lose_commits(struck: Struck) -> None:
    """The answers to its next COMMITs are lost."""
    struck.victim.commits.plan(Lost.AFTER, struck.chance.randint(1, 5))


async def prevent_commits(struck: Struck) -> None:
    """Its connection is lost in front of its next COMMITs."""
    struck.victim.commits.plan(Lost.BEFORE, struck.chance.randint(1, 5))


async def lose_settle(struck: Struck) -> None:
    """The answers to the next COMMITs of settle records are lost, at every process."""
    for member in struck.fleet.running:
        member.commits.plan(Lost.AFTER, 2, words="insert into settlements")


async def lose_claim(struck: Struck) -> None:
    """The answers to the next COMMITs of claims are lost, at every process."""
    for member in struck.fleet.running:
        member.commits.plan(Lost.AFTER, 2, words="set token=")


async def restart_postgres_fast(_: Struck) -> None:
    """SIGINT: sessions are ended, then it starts anew."""
    await servers.in_their_thread(lambda: servers.postgres().restart(signal.SIGINT))


async def restart_postgres_immediately(_: Struck) -> None:
    """SIGQUIT: as after a crash, it recovers from its log."""
    await servers.in_their_thread(lambda: servers.postgres().restart(signal.SIGQUIT))


async def end_sessions(struck: Struck) -> None:
    """`pg_terminate_backend` for all."""
    await servers.postgres().end_sessions(struck.fleet.database)


async def freeze_postgres(_: Struck) -> None:
    """It stands for a while."""
    servers.postgres().freeze()
    await asyncio.sleep(SHORT_LEASE_S / 2)
    servers.postgres().thaw()


async def kill_valkey(struck: Struck) -> None:
    """kill -9, and it comes back empty a little later."""
    await servers.in_their_thread(servers.valkey().kill)
    await asyncio.sleep(struck.chance.uniform(0.5, 3))
    await servers.in_their_thread(servers.valkey().launch)


async def empty_valkey(_: Struck) -> None:
    """FLUSHALL."""
    await servers.valkey().flushall()


async def freeze_valkey(struck: Struck) -> None:
    """Its connections stay open and nothing is answered for a while."""
    servers.valkey().pause()
    await asyncio.sleep(struck.chance.uniform(1, 4))
    servers.valkey().resume()


async def nothing(_: Struck) -> None:
    """What is wrong was wrong from the start."""


async def kill_another(struck: Struck) -> None:
    """kill -9 to one whose clock is right, so that one whose clock is wrong takes over."""
    wrong = struck.fleet.arrangement.clocks
    right = [member for member in struck.fleet.running if member.number not in wrong]
    struck.victim = struck.victim if struck.victim in right else struck.chance.choice(right)
    await kill(struck)


# --- the table ----------------------------------------------------------------------------------------------

EVERY = tuple(Phase)
WORKING = (Phase.STREAMING, Phase.TOOLS, Phase.SETTLE, Phase.CARD)
SOME = (Phase.STREAMING, Phase.TOOLS)
ONCE = (Phase.TOOLS,)


SLOWED_S = 30.0
"""A process under libfaketime is several times slower, with the right time too: no speed is asked of it."""


def _clock(offset: str) -> Arrangement:
    return Arrangement(clocks={0: offset, 1: offset})


FAULTS: tuple[Fault, ...] = (
    Fault("SIGKILL", kill, 2.0, EVERY),
    Fault("SIGTERM", terminate, 3.0, EVERY, exits_with=0),
    Fault("SIGSTOP past the lease", freeze, SURVIVES_S, EVERY, SHORT_LEASE),
    Fault("Postgres black hole past the lease", partition, SURVIVES_S, EVERY, SHORT_LEASE),
    Fault("Postgres half open past the lease", half_open, SURVIVES_S, WORKING, SHORT_LEASE),
    Fault("Postgres connections reset", reset_connections, 3.0, WORKING),
    Fault("Postgres connections refused", refuse_connections, SURVIVES_S, SOME),
    Fault("answers to COMMIT lost", lose_commits, SURVIVES_S, WORKING),
    Fault("lost before COMMIT", prevent_commits, SURVIVES_S, WORKING),
    Fault("answer to the settle's COMMIT lost", lose_settle, SURVIVES_S, ONCE, of_one=False),
    Fault("answer to the claim's COMMIT lost", lose_claim, SURVIVES_S, ONCE, of_one=False),
    Fault("Postgres restarts (fast)", restart_postgres_fast, 5.0, WORKING, of_one=False),
    Fault("Postgres restarts (immediate)", restart_postgres_immediately, 5.0, WORKING, of_one=False),
    Fault("pg_terminate_backend of all", end_sessions, 3.0, WORKING, of_one=False),
    Fault("Postgres frozen for 1.5 s", freeze_postgres, 5.0, SOME, of_one=False),
    Fault("Valkey killed", kill_valkey, 3.0, SOME, of_one=False),
    Fault("Valkey FLUSHALL", empty_valkey, 3.0, SOME, of_one=False),
    Fault("Valkey frozen", freeze_valkey, 3.0, SOME, of_one=False),
    Fault("no Redis at all", nothing, 3.0, ONCE, Arrangement(redis=False), of_one=False),
    Fault("no Redis at all, SIGKILL", kill, 3.0, SOME, Arrangement(redis=False)),
    Fault("bells dropped", nothing, 3.0, ONCE, Arrangement(dropped=0.7), of_one=False),
    Fault("bells doubled", nothing, 3.0, ONCE, Arrangement(doubled=0.7), of_one=False),
    Fault("bells late", nothing, 3.0, ONCE, Arrangement(late_s=1.5), of_one=False),
    Fault("clocks +10 min, SIGKILL of another", kill_another, SLOWED_S, ONCE, _clock("+10m")),
    Fault("clocks -10 min, SIGKILL of another", kill_another, SLOWED_S, ONCE, _clock("-10m")),
    Fault("clocks +1 day, SIGKILL of another", kill_another, SLOWED_S, ONCE, _clock("+1d")),
    Fault("clocks -1 day, SIGKILL of another", kill_another, SLOWED_S, ONCE, _clock("-1d")),
)

"""One seed of each kind of fault: nothing is lost, nothing done twice. `make matrix` runs all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fleet.faults import FAULTS, Fault
from tests.fleet.phases import Phase
from tests.fleet.run import run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fleet"), pytest.mark.timeout(180)]

CHOSEN: Mapping[str, Phase] = {
    "SIGKILL": Phase.TOOLS,
    "SIGTERM": Phase.STREAMING,
    "SIGSTOP past the lease": Phase.CARD,
    "Postgres black hole past the lease": Phase.TOOLS,
    "answers to COMMIT lost": Phase.STREAMING,
    "answer to the settle's COMMIT lost": Phase.TOOLS,
    "lost before COMMIT": Phase.TOOLS,
    "Postgres restarts (immediate)": Phase.TOOLS,
    "pg_terminate_backend of all": Phase.STREAMING,
    "Valkey killed": Phase.TOOLS,
    "Valkey FLUSHALL": Phase.STREAMING,
    "no Redis at all": Phase.TOOLS,
    "bells dropped": Phase.TOOLS,
}
"""How soon it goes on is not asked here: tests share the machine with other tests.

Wrong clocks are left to `make matrix`: under libfaketime the threads of a Python process wait for each other
for seconds, whatever the clock says, and then a lease and a time limit end for no reason of ours.
"""


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in CHOSEN], ids=lambda f: f.name)
async def test_nothing_is_lost_and_nothing_done_twice(fault: Fault) -> None:
    outcome = await run(fault, CHOSEN[fault.name], seed=1)
    assert not outcome.broken, f"{outcome}\n{outcome.logs}"
    assert outcome.completed >= 4


def test_the_chosen_faults_are_rows_of_the_table() -> None:
    phases = {fault.name: fault.phases for fault in FAULTS}
    assert all(phase in phases[name] for name, phase in CHOSEN.items())

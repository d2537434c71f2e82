"""Watchkeeper as a process that is struck: forked from one that has everything imported."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import cast

from tests.kill_points.points import Plan
from tests.stories import processes
from tests.stories.processes import Watchkeeper

processes._context.set_forkserver_preload(
    [*processes.PRELOADED, "tests.kill_points.faults", "tests.kill_points.plants", "mcp.client.session"]
)

SHORTER: Mapping[tuple[str, str], float] = {
    ("bot.slack.api", "ANSWER_WITHIN_S"): 1.5,
    ("bot.flow.keep_cards", "CLIENT_LIMIT_S"): 1.5,
    ("bot.flow.deliver", "CLIENT_LIMIT_S"): 1.5,
    ("bot.flow.claiming", "CLAIM_S"): 4.0,
    ("bot.flow.claiming", "LONGEST_CALL_S"): 2.0,
    ("bot.flow.claiming", "RENEW_EVERY_S"): 0.8,
    ("storage.postgres_engine", "STATEMENT_S"): 2.0,
}
"""Time limits that no setting changes and that a lost answer has to wait out; about 10 s in production."""

SERVERS_LIMITS = {"statement_timeout": "2000"}
"""Likewise, as Postgres is told."""


def start(environment: dict[str, str], folder: Path, log: Path, plan: Plan) -> Watchkeeper:
    """Start it under exactly these variables, with its faults in place."""
    process: ForkServerProcess = processes._context.Process(
        target=_serve, args=(environment, str(folder), str(log), plan), daemon=True
    )
    process.start()
    return Watchkeeper(process)


def _serve(environment: dict[str, str], folder: str, log: str, plan: Plan) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    from bot import cli  # noqa: PLC0415  only the process that serves needs these
    from tests.kill_points import faults, plants  # noqa: PLC0415

    for (module, name), seconds in SHORTER.items():
        found = importlib.import_module(module)
        assert hasattr(found, name), f"{module} has no {name} any more"
        setattr(found, name, seconds)
    cast("dict[str, str]", importlib.import_module("storage.postgres_engine").LIMITS).update(SERVERS_LIMITS)
    plants.plant(plan.plant)
    faults.install(plan)
    sys.exit(cli.run(["serve"]))

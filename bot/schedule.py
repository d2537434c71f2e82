"""The scheduled jobs as one table: what, how often, and which function.

Every process runs them; each is one conditional change, so that no leader is needed. A late run is never
skipped (`misfire_grace_time=None`; APScheduler's default of one second drops runs after a short stall).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Job:
    """One scheduled job; `every_s` is in seconds."""

    name: str
    every_s: float
    run: Callable[[], Awaitable[object]]


def started(jobs: tuple[Job, ...]) -> AsyncIOScheduler:
    """A running scheduler with these jobs."""
    # Not its warnings: a run that is skipped is made up for by the next.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = AsyncIOScheduler(
        timezone="UTC", job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
    )
    for job in jobs:
        scheduler.add_job(
            _run, "interval", args=[job], seconds=job.every_s, id=job.name, jitter=job.every_s / 10
        )
    scheduler.start()
    return scheduler


async def _run(job: Job) -> None:
    """A job that fails is logged and runs again; one that the shutdown cancels ends without a word."""
    try:
        await job.run()
    except asyncio.CancelledError:
        log.debug("job_cancelled", job=job.name)
    except Exception:
        log.exception("job_failed", job=job.name)

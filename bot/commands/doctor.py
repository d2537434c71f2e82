"""`watchkeeper doctor`: one line for each thing that is configured, with the mend where it does not work."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from bot.commands.checks import checks
from bot.commands.findings import Check, Finding, State
from bot.commands.words import plain, say, table
from bot.errors import Permanent, Temporary
from bot.settings import Settings, load

LIMIT_S = 10.0
SIGNS = {State.OK: "ok", State.FAILED: "FAILED", State.OFF: "off"}


@click.command()
def doctor() -> None:
    """Check settings, database, Slack, model and tools, one line each; exit 0 only if all of them work.

    \b
    Example:
      watchkeeper doctor
    """
    findings = asyncio.run(examine(load(os.environ, Path.cwd())))
    say(table(("", "what", "finding"), [(SIGNS[f.state], f.name, f.words) for f in findings]))
    sys.exit(1 if any(finding.state is State.FAILED for finding in findings) else 0)


async def examine(settings: Settings, limit_s: float = LIMIT_S) -> list[Finding]:
    """All checks at once, each within its limit; the order is that of the list of checks."""

    async def one(name: str, check: Check) -> list[Finding]:
        try:
            async with asyncio.timeout(limit_s):
                return await check(settings)
        except TimeoutError:
            return [
                Finding.failed(name, f"no answer within {limit_s:g} s; check the address and the network")
            ]
        except (Temporary, Permanent) as error:
            return [Finding.failed(name, plain(error))]
        except Exception as error:  # noqa: BLE001 - one check that breaks may not hide what the others found
            return [Finding.failed(name, f"the check itself failed: {plain(repr(error))}")]

    found = await asyncio.gather(*(one(name, check) for name, check in checks()))
    return [finding for group in found for finding in group]

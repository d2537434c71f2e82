"""`watchkeeper serve`: the Slack bot."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import click
import structlog

from bot import logs
from bot.settings import load, require_model, require_slack
from bot.settings.database import make_folder
from core.policy import unreachable
from core.redaction import Redactor

log = structlog.get_logger()


@click.command()
def serve() -> None:
    """Run the Slack bot: events in, analyses, scheduled jobs. Ends on SIGTERM or SIGINT.

    \b
    Example:
      SLACK_BOT_TOKEN=xoxb-… SLACK_APP_TOKEN=xapp-… ANTHROPIC_API_KEY=… watchkeeper serve
    """
    _end_at_signals()
    settings = load(os.environ, Path.cwd())
    require_slack(settings)
    require_model(settings)
    make_folder(settings.env.database)
    logs.setup(Redactor(settings.secrets()).redact)
    for rule, by in unreachable(settings.policy):
        if rule.name.startswith("configured"):
            log.warning("policy_rule_never_decides", rule=rule.name, stands_behind=by.name)
    from bot.compose import serve as run_service  # noqa: PLC0415 - loads everything; settings are told before

    sys.exit(asyncio.run(run_service(settings)))


def _end_at_signals() -> None:
    """Until the service listens for itself, nothing runs that would have to be cut first."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))

"""`watchkeeper local`: everything in one process, with a web console in place of Slack."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from pathlib import Path

import click

from bot import logs
from bot.commands.words import complain
from bot.settings import load, require_sqlite
from bot.settings.database import make_folder
from bot.supervise_process import Supervisor, end_at_signals
from bot.web.listening import listen
from core.redaction import Redactor

RESTART = 75
"""The exit code of a child that asks for another one; any that no failure has."""


@click.command()
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
def local(no_open: bool) -> None:
    """Run everything in one process, with an incident channel in the browser. Needs no account and no key.

    With ANTHROPIC_API_KEY Claude investigates, without it a scripted rehearsal.

    \b
    Example:
      watchkeeper local
    """
    end_at_signals()
    settings = load(os.environ, Path.cwd())
    require_sqlite(settings)
    make_folder(settings.env.database)
    listener = listen(settings.env.host, settings.env.port)
    address = f"http://{_shown(settings.env.host)}:{listener.getsockname()[1]}/"
    click.echo(f"Watchkeeper is at {address}  (Ctrl-C ends it)")

    def work(number: int) -> int:
        if number == 0 and not no_open and has_browser():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        logs.setup(Redactor(settings.secrets()).redact)
        from bot.compose import local as run_service  # noqa: PLC0415 - loads everything, in the child only

        return asyncio.run(run_service(settings, listener, restart_code=RESTART))

    sys.exit(Supervisor(work, RESTART, complain).run())


def has_browser() -> bool:
    """Whether somebody sits here who could look at one."""
    has_display = sys.platform in {"darwin", "win32"} or bool(
        {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    )
    return sys.stdout.isatty() and has_display


def _shown(host: str) -> str:
    """The address as a browser on this machine can open it."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - a comparison
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host

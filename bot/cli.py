"""The command `watchkeeper`. Failures are told in one or two lines; exit 1 for one, 2 for wrong use."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from bot import logs
from bot.commands.doctor import doctor
from bot.commands.local import local
from bot.commands.manifest import manifest
from bot.commands.migrate import migrate
from bot.commands.policy import policy
from bot.commands.records import settles, show
from bot.commands.serve import serve
from bot.commands.words import complain, plain
from bot.errors import Unusable

FAILED, WRONG_USE = 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # what a shell reports for SIGINT and SIGPIPE


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="watchkeeper", message="watchkeeper %(version)s")
def watchkeeper() -> None:
    """An AI incident responder that people can steer while it works, in Slack or in the browser.

    Settings come from environment variables and watchkeeper.toml; docs/configuration.md lists them all.

    \b
    Example:
      watchkeeper doctor && watchkeeper serve
    """


for command in (local, serve, doctor, manifest, migrate, policy, settles, show):
    watchkeeper.add_command(command)


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure ends here, in words."""
    logs.silence()  # `serve` sets them up
    try:
        # Not click's own `main`: it speaks at an interrupt, and hides a closed pipe.
        with watchkeeper.make_context("watchkeeper", list(arguments)) as context:
            watchkeeper.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except BrokenPipeError:
        # What is left to write has no reader; the interpreter must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place at which one can be caught
        return _told(error)
    return 0


def _told(error: Exception) -> int:
    from storage.errors import DatabaseUnusable, SchemaOutdated  # noqa: PLC0415 - only a failure needs them

    match error:
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.ctx.get_help() if error.ctx else "", err=True)
            return WRONG_USE
        case click.UsageError():
            return _wrong_use(error)
        case click.ClickException():
            complain(plain(error.format_message()))
            return error.exit_code
        case Unusable() | DatabaseUnusable():
            complain(plain(error))
            return WRONG_USE
        case SchemaOutdated():
            complain(f"{plain(error).rstrip('.')}; run `watchkeeper migrate`")
            return WRONG_USE
    return _failure(error)


def _wrong_use(error: click.UsageError) -> int:
    path = error.ctx.command_path if error.ctx else "watchkeeper"
    click.echo(f"{path}: {plain(error.format_message())}\nSee `{path} --help`.", err=True)
    return WRONG_USE


def _failure(error: Exception) -> int:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - only a failure needs it

    if not isinstance(error, DBAPIError):
        where = traceback.extract_tb(error.__traceback__)[-1]
        complain(f"unexpected failure at {Path(where.filename).name}:{where.lineno}: {plain(repr(error))}")
        return FAILED
    cause = plain(error.orig)
    if "not a database" in cause or "unable to open" in cause:
        complain(
            f"DATABASE_URL: {cause}; name a SQLite file of Watchkeeper's, or one that does not exist yet"
        )
        return WRONG_USE
    mend = "try again when its other user is done" if "locked" in cause else "see `watchkeeper doctor`"
    complain(f"the database failed ({cause}); {mend}")
    return FAILED

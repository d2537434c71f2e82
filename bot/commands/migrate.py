"""`watchkeeper migrate`: the database at the current schema."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from bot.commands.words import say
from bot.settings import load
from bot.settings.database import make_folder


@click.command()
def migrate() -> None:
    """Bring the database to the current schema; `serve` does so itself.

    \b
    Example:
      DATABASE_URL=sqlite:///records.db watchkeeper migrate
    """
    from storage import schema  # noqa: PLC0415 - the database layer is slow to load, and `--help` should not be

    settings = load(os.environ, Path.cwd())
    make_folder(settings.env.database)
    asyncio.run(schema.upgrade(settings.database_url))
    say(f"{settings.env.database} is at the current schema")

"""`watchkeeper manifest`: the Slack app manifest."""

from __future__ import annotations

import json

import click

from bot.commands.words import say


@click.command()
@click.option("--http", "address", metavar="URL", help="Public address of /slack/events, for HTTP mode.")
def manifest(address: str | None) -> None:
    """Print the Slack app manifest (JSON) with exactly the scopes and events that are used.

    \b
    Example:
      watchkeeper manifest
      watchkeeper manifest --http https://watchkeeper.example.com/slack/events
    """
    from bot.slack.manifest import manifest as made  # noqa: PLC0415 - loads nothing of Slack for other commands

    if address is not None and not address.startswith("https://"):
        raise click.BadParameter("Slack sends events only to https:// addresses", param_hint="--http")
    say(json.dumps(made(address), indent=2))

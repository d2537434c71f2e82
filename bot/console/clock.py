"""Times as a page shows them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.console.html import Html, tag


def shown(moment: float) -> Html:
    """A time of day; the page turns it into the reader's own."""
    at = datetime.fromtimestamp(moment, UTC)
    return tag("time", at.strftime("%H:%M UTC"), datetime=at.isoformat(timespec="seconds"))

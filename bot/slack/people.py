"""Who somebody is, by Slack's own record. Least right where it cannot be had.

Fields: docs.slack.dev/reference/objects/user-object. `is_stranger` marks people of other companies in shared
channels, but not always, so the team and the enterprise are compared as well.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from bot.errors import Permanent
from bot.slack.api import SlackApi
from bot.slack.identity import Identity
from bot.slack.parse import SLACKS_OWN
from bot.slack.payload import Payload, identifier, record, words
from bot.words.speech import cleaned
from core.arrivals import Author
from core.history import Json

KNOWN_FOR_S = 300.0
UNKNOWN_FOR_S = 60.0
MOST_REMEMBERED = 5_000
NOBODY_HERE = frozenset({"user_not_found", "user_not_visible"})
BOT_FLAGS = ("is_bot", "is_workflow_bot", "is_connector_bot")


class People:
    """The authors of one workspace, remembered for a few minutes."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._known: OrderedDict[str, tuple[float, Author]] = OrderedDict()

    async def author(self, user_id: str, us: Identity) -> Author:
        """The record of one author; bots that post without a user are known by their bot id."""
        if user_id in SLACKS_OWN or user_id.startswith("B"):
            return Author(id=user_id, name=user_id, is_bot=True)
        until, known = self._known.get(user_id, (0.0, None))
        if known is not None and time.monotonic() < until:
            return known
        try:
            answer = await self._api.call("users.info", user=user_id)
        except Permanent as refused:
            if refused.code not in NOBODY_HERE:
                raise
            return self._remember(Author(id=user_id, name=user_id, is_external=True), UNKNOWN_FOR_S)
        return self._remember(author_from(record(answer, "user"), user_id, us), KNOWN_FOR_S)

    async def name(self, message: dict[str, Json], user_id: str, us: Identity) -> str:
        """A name for a message's author: what the message says, else the record's."""
        said = [words(message, "username"), words(record(message, "bot_profile"), "name")]
        profile = record(message, "user_profile")
        said += [words(profile, "display_name"), words(profile, "real_name")]
        name = next((cleaned(name) for name in said if name), "")
        if name or not user_id:
            return name or "somebody"
        try:
            return (await self.author(user_id, us)).name
        except Permanent:
            return user_id

    def _remember(self, author: Author, seconds: float) -> Author:
        self._known[author.id] = (time.monotonic() + seconds, author)
        self._known.move_to_end(author.id)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return author


def author_from(user: Payload, user_id: str, us: Identity) -> Author:
    """What a `users.info` record says about rights."""
    profile = record(user, "profile")
    names = (
        words(profile, "display_name"),
        words(profile, "real_name"),
        words(user, "real_name"),
        words(user, "name"),
    )
    return Author(
        id=user_id,
        name=next((cleaned(name)[:80] for name in names if name), user_id),
        is_bot=any(user.get(flag) is True for flag in BOT_FLAGS),
        is_deactivated=user.get("deleted") is True,
        is_guest=user.get("is_restricted") is True or user.get("is_ultra_restricted") is True,
        is_external=user.get("is_stranger") is True or _is_foreign(user, us),
    )


def _is_foreign(user: Payload, us: Identity) -> bool:
    """Another company: neither our workspace nor, on Enterprise Grid, our organisation."""
    team = identifier(user, "team_id") or identifier(record(user, "profile"), "team")
    enterprise = identifier(record(user, "enterprise_user"), "enterprise_id")
    if us.enterprise and us.enterprise in {enterprise, team}:
        return False
    return bool(team) and team != us.team

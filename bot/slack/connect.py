"""Finding out who we are: `auth.test`, asked until Slack answers.

Nothing is accepted from Slack and nothing is sent to it before the identity is known.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from bot.errors import Permanent, Temporary
from bot.slack.api import SlackApi
from bot.slack.identity import Identity
from core.history import Json

log = structlog.get_logger()

ASK_EVERY_S = 5.0
"""While Slack takes nothing from us it is asked so often whether it does again, even with nothing to say."""


class Connection:
    """One installation. `identity` is None until `connect` has succeeded; `reason` says why, for people."""

    def __init__(self, api: SlackApi) -> None:
        self.api = api
        self.identity: Identity | None = None
        self.reason = "Slack has not been asked who we are yet"

    @property
    def us(self) -> Identity:
        """Who we are; Temporary while that is not known."""
        if self.identity is None:
            raise Temporary(self.reason, 1.0)
        return self.identity

    async def connect(self) -> Identity:
        """Ask once. Permanent with Slack's word (`invalid_auth`, …) for a rejected token, else Temporary."""
        try:
            answer = await self.api.call("auth.test")
            app_id = _text(answer, "app_id") or await self._app_id(_text(answer, "bot_id"))
        except (Permanent, Temporary) as error:
            self.reason = str(error)
            raise
        self.identity = Identity(
            team=_text(answer, "team_id"),
            user_id=_text(answer, "user_id"),
            bot_id=_text(answer, "bot_id"),
            app_id=app_id,
            enterprise=_text(answer, "enterprise_id"),
            team_name=_text(answer, "team"),
            scopes=frozenset(
                scope for scope in _text(answer, "_scopes").replace(" ", "").split(",") if scope
            ),
        )
        self.reason = ""
        log.info("slack_identity_known", team=self.identity.team, bot_user=self.identity.user_id)
        return self.identity

    async def keep_asking(self) -> None:
        """For ever: find out that Slack takes calls again when nothing else would."""
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            if self.api.health.reason:
                with suppress(Permanent, Temporary):
                    await self.api.call("auth.test")

    async def _app_id(self, bot_id: str) -> str:
        """`auth.test` need not name the app; without it our messages are known by their bot id."""
        if not bot_id:
            return ""
        try:
            answer = await self.api.call("bots.info", bot=bot_id)
        except Permanent:
            return ""
        return _text(answer.get("bot") or {}, "app_id")


def _text(answer: dict[str, Json], name: str) -> str:
    found = answer.get(name)
    return found if isinstance(found, str) else ""

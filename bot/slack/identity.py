"""Who we are in one Slack workspace, as `auth.test` told."""

from __future__ import annotations

from dataclasses import dataclass

PLATFORM = "slack"


@dataclass(frozen=True, slots=True)
class Identity:
    """Our installation. `app_id` and `enterprise` are "" where Slack did not tell them."""

    team: str
    user_id: str
    bot_id: str
    app_id: str = ""
    enterprise: str = ""
    team_name: str = ""
    scopes: frozenset[str] = frozenset()

    def wrote(self, *, user: str, bot_id: str, app_id: str) -> bool:
        """Whether a message with these author fields is ours: a bot's message may lack any of the three."""
        pairs = ((user, self.user_id), (bot_id, self.bot_id), (app_id, self.app_id))
        return any(given and given == known for given, known in pairs)


def message_key(team: str, channel: str, ts: str) -> str:
    """The key of a message, the same whichever event carries it."""
    return f"{PLATFORM}:{team}:{channel}:{ts}"

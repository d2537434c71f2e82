"""Who and where: users, channels and the messages in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.servers.slack.messages import Message
from tests.servers.slack.shapes import Json, Refused

TEAM = "T0WATCH001"
OTHER_TEAM = "T0OTHER001"
APP = "A0WATCH001"
BOT = "B0WATCH001"
BOT_USER = "U0WATCHBOT"


@dataclass(eq=False)
class User:
    """A person or a bot. `team_id` other than ours makes an outsider of a Slack Connect channel."""

    id: str
    name: str
    team_id: str = TEAM
    enterprise_id: str | None = None
    is_bot: bool = False
    is_workflow_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_email_confirmed: bool = True
    deleted: bool = False
    bot_id: str | None = None
    app_id: str | None = None

    @property
    def is_outsider(self) -> bool:
        return self.team_id != TEAM

    def profile(self) -> Json:
        return {"real_name": self.name, "display_name": self.name.lower(), "team": self.team_id}

    def json(self) -> Json:
        profile = self.profile()
        if self.bot_id:
            profile |= {"bot_id": self.bot_id, "api_app_id": self.app_id}
        shown: Json = {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name.lower(),
            "real_name": self.name,
            "deleted": self.deleted,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "updated": 1764500000,
            "profile": profile,
        }
        if self.is_workflow_bot:
            shown["is_workflow_bot"] = True
        if self.is_stranger:
            shown["is_stranger"] = True
        if self.enterprise_id:
            shown["enterprise_user"] = {"id": self.id, "enterprise_id": self.enterprise_id, "teams": []}
        if not self.deleted:
            shown |= {
                "tz": "Europe/Berlin",
                "is_admin": False,
                "is_owner": False,
                "is_restricted": self.is_restricted,
                "is_ultra_restricted": self.is_ultra_restricted,
                "is_email_confirmed": self.is_email_confirmed,
            }
        return shown

    def outsider_fields(self) -> Json:
        """What Slack adds to the messages of a person from another company."""
        if not self.is_outsider:
            return {}
        team = self.enterprise_id or self.team_id
        return {"user_team": team, "source_team": team, "user_profile": self.profile()}

    def bot_profile(self) -> Json | None:
        if self.bot_id is None:
            return None
        shown: Json = {"id": self.bot_id, "app_id": self.app_id, "name": self.name, "team_id": self.team_id}
        shown |= {"deleted": self.deleted, "updated": 1764500000, "icons": {}}
        return shown | ({"is_workflow_bot": True} if self.is_workflow_bot else {})


@dataclass(eq=False)
class Channel:
    id: str
    name: str
    members: set[str] = field(default_factory=set)
    archived: bool = False
    ext_shared: bool = False
    private: bool = False
    im_user: str | None = None
    locked_threads: set[str] = field(default_factory=set)
    messages: dict[str, Message] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The `channel_type` of events."""
        if self.im_user:
            return "im"
        return "group" if self.private else "channel"

    def shown(self) -> Iterator[Message]:
        """What is still there, oldest first."""
        return (m for m in self.messages.values() if not m.deleted)

    def thread(self, root_ts: str) -> list[Message]:
        return [m for m in self.shown() if root_ts in (m.ts, m.thread_ts)]

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_im": self.kind == "im",
            "is_private": self.private,
            "is_archived": self.archived,
            "is_member": BOT_USER in self.members,
            "is_ext_shared": self.ext_shared,
            "is_shared": self.ext_shared,
            "num_members": len(self.members),
            "context_team_id": TEAM,
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }


class Workspace:
    """One workspace with a cast that most stories need; add to it freely."""

    def __init__(self) -> None:
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.usergroups: dict[str, list[str]] = {}
        self._cast()

    def add_user(self, user: User) -> User:
        self.users[user.id] = user
        return user

    def add_channel(self, channel: Channel) -> Channel:
        self.channels[channel.id] = channel
        return channel

    def user(self, who: str) -> User:
        """By id or by name; an unknown one is a mistake of the test."""
        for user in self.users.values():
            if who in (user.id, user.name):
                return user
        raise LookupError(f"no user {who!r}; there are {sorted(u.name for u in self.users.values())}")

    def channel(self, where: str) -> Channel:
        """By id or by `#name`; an unknown one is a mistake of the test."""
        found = self.find_channel(where)
        if found is None:
            names = sorted(c.name for c in self.channels.values())
            raise LookupError(f"no channel {where!r}; there are {names}")
        return found

    def find_channel(self, where: object) -> Channel | None:
        for channel in self.channels.values():
            if where in (channel.id, f"#{channel.name}"):
                return channel
        return None

    def visible_channel(self, where: object) -> Channel:
        """The channel as the bot may see it: a private one without the bot does not exist."""
        channel = self.find_channel(where)
        if channel is None or (channel.private and BOT_USER not in channel.members):
            raise Refused("channel_not_found")
        return channel

    def message(self, ts: str, where: str | None = None) -> Message:
        """Any message ever posted, deleted ones too; an unknown one is a mistake of the test."""
        places = [self.channel(where)] if where else list(self.channels.values())
        for channel in places:
            if ts in channel.messages:
                return channel.messages[ts]
        raise LookupError(f"no message {ts} in {where or 'any channel'}")

    def all_messages(self) -> list[Message]:
        found = [m for channel in self.channels.values() for m in channel.messages.values()]
        return sorted(found, key=lambda m: m.ts)

    def dm(self, user_id: str) -> Channel:
        """The direct message channel with this user, opened if need be."""
        for channel in self.channels.values():
            if channel.im_user == user_id:
                return channel
        opened = Channel(f"D{user_id[1:]}", user_id, members={BOT_USER, user_id}, im_user=user_id)
        return self.add_channel(opened)

    def _cast(self) -> None:
        for user in (
            User(BOT_USER, "bot", is_bot=True, bot_id=BOT, app_id=APP),
            User("U0ANA00001", "Ana"),
            User("U0BEN00001", "Ben"),
            User("U0CLEO0001", "Cleo"),
            User("U0GUS00001", "Gus", is_restricted=True),
            User("U0UMA00001", "Uma", is_restricted=True, is_ultra_restricted=True),
            User("U0XENO0001", "Xeno", team_id=OTHER_TEAM, is_stranger=True),
            User("U0DEE00001", "Dee", deleted=True),
            User("U0ALERT001", "Alertbot", is_bot=True, bot_id="B0ALERT001", app_id="A0ALERT001"),
            User(
                "U0FLOW0001",
                "Flow",
                is_bot=True,
                is_workflow_bot=True,
                bot_id="B0FLOW0001",
                app_id="A0FLOW0001",
            ),
        ):
            self.add_user(user)
        everybody = set(self.users)
        insiders = {u.id for u in self.users.values() if not u.is_outsider}
        self.add_channel(Channel("C0INC00001", "inc", members=set(insiders)))
        self.add_channel(Channel("C0OTHER001", "other", members=set(insiders)))
        self.add_channel(Channel("C0SHARED01", "shared", members=everybody, ext_shared=True))
        self.add_channel(Channel("C0NOBOT001", "nobot", members=insiders - {BOT_USER}))
        self.add_channel(Channel("C0SECRET01", "secret", members=insiders - {BOT_USER}, private=True))
        self.add_channel(Channel("C0PRIV0001", "private", members=set(insiders), private=True))
        self.add_channel(Channel("C0OLD00001", "old", members=set(insiders), archived=True))
        self.usergroups["S0ONCALL01"] = ["U0ANA00001", "U0BEN00001"]

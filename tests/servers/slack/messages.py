"""A message with everything it ever was."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.servers.slack.shapes import Json

if TYPE_CHECKING:
    from tests.servers.slack.calls import Call


class Version(NamedTuple):
    """What the message showed from `time` (monotonic) on."""

    time: float
    metadata: Json | None
    blocks: list[Json]
    text: str
    call: Call | None


@dataclass(eq=False)
class Message:
    channel: str
    ts: str
    user: str | None
    text: str
    team: str
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    subtype: str | None = None
    metadata: Json | None = None
    bot_id: str | None = None
    app_id: str | None = None
    bot_profile: Json | None = None
    username: str | None = None
    edited: Json | None = None
    client_msg_id: str | None = None
    parent_user_id: str | None = None
    author: Json = field(default_factory=dict)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=list)
    deleted_at: float | None = None

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def is_reply(self) -> bool:
        return self.thread_ts is not None and self.thread_ts != self.ts

    def remember(self, call: Call | None = None) -> None:
        self.versions.append(Version(time.monotonic(), self.metadata, self.blocks, self.text, call))

    def json(self, *, metadata: bool = False) -> Json:
        """The message as the Web API and the events show it; metadata only when asked for."""
        shown: Json = {"type": "message", "ts": self.ts, "text": self.text}
        optional = {
            "subtype": self.subtype,
            "user": self.user,
            "team": self.team if self.user else None,
            "bot_id": self.bot_id,
            "app_id": self.app_id,
            "bot_profile": self.bot_profile,
            "username": self.username,
            "client_msg_id": self.client_msg_id,
            "thread_ts": self.thread_ts,
            "parent_user_id": self.parent_user_id,
            "blocks": self.blocks,
            "attachments": self.attachments,
            "files": self.files,
            "edited": self.edited,
        }
        shown |= {key: value for key, value in optional.items() if value}
        shown |= self.author
        if self.reactions:
            shown["reactions"] = self.reactions_json()
        if metadata and self.metadata is not None:
            shown["metadata"] = self.metadata
        return shown

    def reactions_json(self) -> list[Json]:
        return [{"name": n, "users": list(u), "count": len(u)} for n, u in self.reactions.items()]

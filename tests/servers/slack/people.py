"""What people and other apps do in the workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.servers.slack.blocks import nested
from tests.servers.slack.delivery import Form, new_id
from tests.servers.slack.envelopes import block_actions
from tests.servers.slack.messages import Message
from tests.servers.slack.methods.files import file_json
from tests.servers.slack.shapes import Json
from tests.servers.slack.speech import spoken
from tests.servers.slack.state import File, Mentions, Reacted, ResponseUrl, State
from tests.servers.slack.workspace import BOT_USER, Channel, User


class People:
    state: State

    async def say(
        self,
        who: str,
        where: str,
        text: str,
        *,
        thread: str | None = None,
        mention: bool = False,
        files: Sequence[str] = (),
        broadcast: bool = False,
        events: Mentions | None = None,
        subtype: str | None = None,
    ) -> str:
        """Somebody writes; returns the ts. `@Name` in the text is a real mention (`@bot` is ours)."""
        user, channel = self._there(who, where)
        stored, blocks = spoken(f"@bot {text}".strip() if mention else text, self._known)
        message = self._written(user, channel, stored, thread)
        message.blocks = blocks
        message.files = [self._attach(name, user) for name in files]
        message.client_msg_id = None if files else new_id()
        message.subtype = subtype or ("file_share" if files else "thread_broadcast" if broadcast else None)
        return await self._sent(message, channel, events)

    async def bot_says(
        self,
        who: str,
        where: str,
        text: str,
        *,
        thread: str | None = None,
        blocks: Sequence[Json] = (),
        attachments: Sequence[Json] = (),
        events: Mentions | None = None,
    ) -> str:
        """Another app or a workflow posts; its text is taken as it is, mentions and all."""
        user, channel = self._there(who, where)
        message = self._written(user, channel, text, thread)
        message.subtype, message.username = "bot_message", user.name
        message.bot_id, message.app_id, message.bot_profile = user.bot_id, user.app_id, user.bot_profile()
        message.blocks, message.attachments = list(blocks), list(attachments)
        message.user = user.id if user.is_workflow_bot else None
        return await self._sent(message, channel, events)

    async def alert(self, where: str, title: str, *, firing: bool = True, who: str = "Alertbot") -> str:
        """A message as alerting apps post it: little text, the matter in attachments and blocks."""
        colour = "danger" if firing else "good"
        block = {"type": "section", "text": {"type": "mrkdwn", "text": f"*{title}*"}}
        attachment = {"color": colour, "title": title, "fallback": title, "fields": []}
        return await self.bot_says(who, where, "", blocks=[block], attachments=[attachment])

    async def edit(self, ts: str, text: str, *, mention: bool = False, where: str | None = None) -> None:
        """The author edits; an edit that names the bot fires app_mention again, with `edited`."""
        message, channel = self._find(ts, where)
        before = message.json()
        message.text, message.blocks = spoken(f"@bot {text}" if mention else text, self._known)
        message.edited = {"user": message.user, "ts": self.state.clock.ts()}
        self.state.changed(message, before, channel)
        if f"<@{BOT_USER}>" in message.text:
            self.state.mention_again(message, channel)
        await asyncio.sleep(0)

    async def unfurl(self, ts: str, *, where: str | None = None) -> None:
        """Slack itself changes a message: a preview appears, the text stays."""
        message, channel = self._find(ts, where)
        before = message.json()
        message.attachments = [*message.attachments, {"from_url": "https://example.com", "title": "Example"}]
        self.state.changed(message, before, channel)
        await asyncio.sleep(0)

    async def delete(self, ts: str, *, where: str | None = None) -> None:
        """The author or an admin deletes. A root with replies leaves a tombstone (message_changed)."""
        message, channel = self._find(ts, where)
        if len(channel.thread(ts)) > 1:
            before = message.json()
            message.subtype, message.text, message.blocks = "tombstone", "This message was deleted.", []
            message.user, message.files, message.attachments = "USLACKBOT", [], []
            self.state.changed(message, before, channel)
        else:
            self.state.deleted(message, channel)
        await asyncio.sleep(0)

    async def react(self, who: str, ts: str, name: str, *, where: str | None = None) -> None:
        user, (message, _) = self.state.workspace.user(who), self._find(ts, where)
        message.reactions.setdefault(name, []).append(user.id)
        self.state.reacted.append(Reacted(message.channel, ts, user.id, name, True))
        self.state.bell.ring()

    async def click(
        self,
        ts: str,
        action_id: str,
        who: str,
        *,
        where: str | None = None,
        version: int = -1,
        value: str | None = None,
    ) -> bool:
        """Press a button that the message shows (or showed, with an older `version`).

        True if the app acknowledged in time. Never sent twice; lost if nobody listens.
        """
        message, channel = self._find(ts, where)
        user = self.state.workspace.user(who)
        action = _action(message, action_id, version, user)
        if value is not None:
            action["value"] = value
        action["action_ts"] = self.state.clock.ts()
        url = ResponseUrl(f"{self.state.number():06d}", message, user.id)
        self.state.responses[url.id] = url
        body = block_actions(message, channel, user, action, f"{self.state.url}/actions/{url.id}")
        delivery = self.state.events.emit(Form.INTERACTION, body)
        await delivery.done.wait()
        return delivery.acked

    def _there(self, who: str, where: str) -> tuple[User, Channel]:
        user, channel = self.state.workspace.user(who), self.state.workspace.channel(where)
        assert not channel.archived, f"nobody can write to the archived #{channel.name}"
        return user, channel

    def _find(self, ts: str, where: str | None) -> tuple[Message, Channel]:
        message = self.state.workspace.message(ts, where)
        assert not message.deleted, f"{ts} is deleted"
        return message, self.state.workspace.channel(message.channel)

    def _known(self, name: str) -> str | None:
        if name.lower() in ("bot", "watchkeeper"):
            return BOT_USER
        return next((u.id for u in self.state.workspace.users.values() if u.name == name), None)

    def _written(self, user: User, channel: Channel, text: str, thread: str | None) -> Message:
        if thread is not None:
            root = channel.messages[thread]
            thread = root.thread_ts or root.ts
        return Message(
            channel=channel.id,
            ts=self.state.clock.ts(),
            user=user.id,
            text=text,
            team=user.team_id,
            thread_ts=thread,
            author=user.outsider_fields(),
        )

    async def _sent(self, message: Message, channel: Channel, events: Mentions | None) -> str:
        self.state.add(message, channel)
        self.state.announce(message, channel, events)
        await asyncio.sleep(0)
        return message.ts

    def _attach(self, name: str, user: User) -> Json:
        number = self.state.number()
        file = File(
            f"F0FILE{number:05d}", name, 3, f"up-{number:05d}", user=user.id, content=b"abc", usable_at=0.0
        )
        self.state.files[file.id] = file
        return file_json(self.state, file)


def _action(message: Message, action_id: str, version: int, user: User) -> Json:
    """The element with this action_id, as the interaction names it."""
    for block in message.versions[version].blocks:
        for element in nested(block):
            if element.get("action_id") == action_id and user.id in element.get(
                "visible_to_user_ids", [user.id]
            ):
                shown: dict[str, Any] = {"type": element["type"], "action_id": action_id}
                shown["block_id"] = block.get("block_id", "")
                shown |= {key: element[key] for key in ("text", "value") if key in element}
                return shown
    raise AssertionError(f"{message.ts} shows {user.name} nothing to press with action_id {action_id!r}")

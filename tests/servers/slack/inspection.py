"""Looking at what the app did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, TypeVar

from tests.servers.slack.calls import Call, Violation
from tests.servers.slack.delivery import Delivery
from tests.servers.slack.messages import Message, Version
from tests.servers.slack.shapes import Json
from tests.servers.slack.state import Ephemeral, File, Reacted, ResponseUrl, State
from tests.servers.slack.workspace import BOT

Found = TypeVar("Found")


class Inspection:
    state: State

    @property
    def calls(self) -> list[Call]:
        return self.state.calls

    @property
    def violations(self) -> list[Violation]:
        return self.state.violations

    @property
    def ephemerals(self) -> list[Ephemeral]:
        return self.state.ephemerals

    @property
    def files(self) -> dict[str, File]:
        return self.state.files

    @property
    def deliveries(self) -> list[Delivery]:
        """Every event and interaction, with its attempts."""
        return self.state.events.deliveries

    @property
    def responses(self) -> list[ResponseUrl]:
        """The response_urls that were handed out, each with what was posted to it."""
        return list(self.state.responses.values())

    @property
    def reacted(self) -> list[Reacted]:
        return self.state.reacted

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def message(self, channel: str, ts: str) -> Message:
        return self.state.workspace.message(ts, channel)

    def thread(self, channel: str, ts: str) -> list[Message]:
        """Root and replies that are still there, oldest first."""
        return self.state.workspace.channel(channel).thread(ts)

    def versions(self, channel: str, ts: str) -> list[Version]:
        return self.message(channel, ts).versions

    def reactions(self, ts: str) -> dict[str, list[str]]:
        """Emoji name → user ids, as they stand now."""
        return self.state.workspace.message(ts).reactions

    def bot_messages(self, channel: str | None = None) -> list[Message]:
        """All that the bot ever posted, deleted ones too."""
        where = self.state.workspace.channel(channel).id if channel else None
        return [
            m for m in self.state.workspace.all_messages() if m.bot_id == BOT and where in (None, m.channel)
        ]

    def of_type(self, event_type: str) -> list[Message]:
        """The bot's messages whose latest metadata is of this type, deleted ones left out."""
        return [
            m
            for m in self.bot_messages()
            if not m.deleted and (m.metadata or {}).get("event_type") == event_type
        ]

    async def wait_for(self, predicate: Callable[[Self], Found], timeout: float = 5.0) -> Found:
        """The first true value of the predicate; looked at again at every call and event."""
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            ring = self.state.bell.next_ring()
            if found := predicate(self):
                return found
            left = deadline - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(max(0.0, min(left, 0.2))):
                    await ring.wait()
            except TimeoutError:
                if left <= 0:
                    raise AssertionError(f"not within {timeout} s\n{self.dump()}") from None

    def dump(self) -> str:
        """The workspace and the last calls, for people."""
        lines = ["— messages —"]
        for message in self.state.workspace.all_messages():
            who = message.user or message.username or "?"
            indent = "    " if message.is_reply else ""
            marks = "".join(f" :{name}:" for name in message.reactions) + (
                " (deleted)" if message.deleted else ""
            )
            lines.append(
                f"{indent}{message.ts} {who}: {message.text[:200]!r}{_label(message.metadata)}{marks}"
            )
        lines += ["— last calls —", *(call.line()[:240] for call in self.calls[-25:])]
        lines += ["— last deliveries —"]
        for delivery in self.deliveries[-15:]:
            tries = [attempt.failed or "acked" for attempt in delivery.attempts]
            lines.append(f"{delivery.type} {delivery.event.get('ts', '')} {tries}")
        return "\n".join(lines)


def _label(metadata: Json | None) -> str:
    return "" if metadata is None else f" [{metadata['event_type']} {metadata['event_payload']}]"

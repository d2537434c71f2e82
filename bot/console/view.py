"""What one person sees of the channel now, read from the channel and the records."""

from __future__ import annotations

from dataclasses import dataclass

from bot.console.channel import Channel
from bot.console.draw_page import Page, draw_page, draw_threads
from bot.console.draw_panel import draw_panel
from bot.console.draw_thread import draw_message, draw_note
from bot.console.html import Html
from bot.console.identity import thread_of
from bot.console.people import Person
from bot.console.records_port import Inside
from core.card import CardState

MORPH = "outerMorph"


@dataclass(frozen=True, slots=True)
class View:
    """One person's view of one thread, or of the page that begins one."""

    channel: Channel
    inside: Inside
    viewer: Person
    thread: str | None

    async def page(self) -> str:
        """The whole page."""
        change = self.channel.change  # read first: whatever comes meanwhile is sent as a change
        return draw_page(
            Page(
                viewer=self.viewer,
                change=change,
                roots=await self.channel.messages("ref = thread AND NOT deleted"),
                live=await self._live(),
                process=self.inside.process,
                choices=self.inside.stage.choices,
                thread=self.thread,
                lines=await self.lines() if self.thread else (),
                panel=await self.panel() if self.thread else Html(""),
            )
        )

    async def lines(self) -> list[Html]:
        """The thread's messages and what the viewer was told privately, by time."""
        messages = await self.channel.messages("thread = ?", self.thread)
        notes = await self.channel.notes(self.thread or "", self.viewer.id)
        lines = [(one.sent_at, draw_message(one, self.viewer)) for one in messages]
        lines += [(note.sent_at, draw_note(note)) for note in notes]
        return [line for _, line in sorted(lines, key=lambda pair: pair[0])]

    async def lines_since(self, change: int) -> tuple[list[Html], list[Html]]:
        """Messages that changed since then, and those that are new since then."""
        found = await self.channel.messages("thread = ? AND changed > ?", self.thread, change)
        notes = await self.channel.notes(self.thread or "", self.viewer.id, change)
        old = [draw_message(one, self.viewer, MORPH) for one in found if one.created <= change]
        new = [draw_message(one, self.viewer) for one in found if one.created > change]
        return old, [*new, *(draw_note(note) for note in notes)]

    async def panel(self, *, oob: bool = False) -> Html:
        """The records of the thread."""
        conversation = thread_of(self.thread or "").conversation_id
        shown = await self.inside.records.conversation(conversation)
        settles = await self.inside.records.settles(conversation) if shown else []
        return draw_panel(shown, settles, MORPH if oob else None)

    async def threads(self, *, oob: bool = False) -> Html:
        """The list of incidents."""
        roots = await self.channel.messages("ref = thread AND NOT deleted")
        live = await self._live()
        return draw_threads(roots, live, self.viewer, self.thread, MORPH if oob else None)

    async def _live(self) -> frozenset[str]:
        cards = await self.channel.messages("card IS NOT NULL AND NOT deleted")
        return frozenset(one.thread for one in cards if one.payload.get("state") == CardState.LIVE)

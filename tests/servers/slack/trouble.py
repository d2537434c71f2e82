"""Everything a test can make go wrong."""

from __future__ import annotations

import asyncio

from tests.servers.slack.delivery import Picked
from tests.servers.slack.faults import Fault, Kind, When
from tests.servers.slack.state import State
from tests.servers.slack.workspace import BOT_USER


class Trouble:
    state: State

    def fail(
        self,
        method: str,
        error: str = "internal_error",
        times: int | None = 1,
        when: When | None = None,
        status: int = 200,
        *,
        applied: bool = False,
    ) -> Fault:
        """Refuse; a status of 500 and more answers without JSON. With `applied` it was done all the same."""
        return self._add(Fault(Kind.FAIL, method, times, when, error=error, status=status, applied=applied))

    def rate_limit(
        self, method: str, retry_after: int = 1, times: int | None = 1, when: When | None = None
    ) -> Fault:
        """Answer 429; whoever calls again before `retry_after` seconds is noted as a violation."""
        return self._add(Fault(Kind.RATE_LIMIT, method, times, when, seconds=retry_after))

    def lose_reply(self, method: str, times: int | None = 1, when: When | None = None) -> Fault:
        """Do what was asked, then close the connection without a word."""
        return self._add(Fault(Kind.LOSE_REPLY, method, times, when))

    def delay(self, method: str, seconds: float, times: int | None = None, when: When | None = None) -> Fault:
        return self._add(Fault(Kind.DELAY, method, times, when, seconds=seconds))

    def hang(
        self, method: str, times: int | None = 1, when: When | None = None, *, applied: bool = False
    ) -> Fault:
        """Don't answer until `.release()`; with `applied` the call takes effect at once all the same."""
        return self._add(Fault(Kind.HANG, method, times, when, applied=applied))

    def heal(self, method: str | None = None) -> None:
        """Take back the faults of one method, or all; what hangs goes on."""
        self.state.faults.heal(method)

    def revoke(self, error: str = "token_revoked") -> None:
        self.state.revoked = error

    def restore(self) -> None:
        self.state.revoked = None

    def archive(self, where: str) -> None:
        """The channel stays readable and takes nothing more."""
        self.state.workspace.channel(where).archived = True

    def unarchive(self, where: str) -> None:
        self.state.workspace.channel(where).archived = False

    def remove_bot(self, where: str) -> None:
        """Somebody takes the app out of a channel: it neither hears nor says anything there."""
        self.state.workspace.channel(where).members.discard(BOT_USER)

    def close_edit_window(self, after_s: float = 0.0) -> None:
        """The workspace's setting: no message can be edited so long after it was posted."""
        self.state.edit_window_s = after_s

    def disable_messages_tab(self) -> None:
        """Nobody can be written to directly by the app."""
        self.state.messages_tab = False

    def lock_thread(self, where: str, ts: str) -> None:
        self.state.workspace.channel(where).locked_threads.add(ts)

    def drop_event_acks(self, times: int) -> None:
        """The next acknowledgements over Socket Mode get lost on their way."""
        self.state.sockets.drop_acks += times

    def duplicate_event(self, times: int = 2, when: Picked | None = None) -> None:
        """Deliver the next (matching) event so many times; event_id is the same each time."""
        self.state.events.copy_next(times, when)

    def hold_events(self) -> None:
        """Keep events back until `release_events`."""
        self.state.events.hold()

    def release_events(self, *, reverse: bool = False) -> None:
        self.state.events.release(reverse=reverse)

    async def refresh_sockets(self, reason: str = "refresh_requested") -> None:
        """Ask for new connections: `warning` leaves the old ones open, the other reasons close them."""
        await self.state.sockets.refresh(reason, close=reason != "warning")

    def cut_sockets(self) -> None:
        """The network takes every Socket Mode connection away without a word."""
        self.state.sockets.cut()

    async def events_settled(self, timeout: float = 5.0) -> None:
        """Wait until every event is acknowledged or given up."""
        async with asyncio.timeout(timeout):
            await self.state.events.settled()

    def _add(self, fault: Fault) -> Fault:
        return self.state.faults.add(fault)

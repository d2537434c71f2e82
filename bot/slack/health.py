"""Whether Slack takes calls from us, told by what became of the last ones.

Rule 1: while the token is rejected one call now and then finds out whether it works again; all others are
refused here, so that a dead installation is not called by everything that waits.
Rule 2: what is said ends with the mend.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from bot.errors import OutcomeUnknown, Permanent, Rejected, Unreachable
from bot.slack.refusal_table import Kind, kind_of

log = structlog.get_logger()

AWAY_AFTER = 3  # calls in a row: one that is lost says nothing about the next
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class Health:
    """What the last calls of one installation tell."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rejected: Rejected | None = None
        self._pause_s, self._ask_at = FIRST_PAUSE_S, float("-inf")
        self._unscoped: dict[str, Rejected] = {}
        self._lost, self._lost_because = 0, ""

    @property
    def reason(self) -> str:
        """Why nothing can be sent now, for people; "" when it can."""
        if self._rejected is not None:
            mend = "install the app again, set its new token and restart; what is owed waits"
            return f"Slack rejects SLACK_BOT_TOKEN ({self._rejected.code}): {mend}"
        for refused in self._unscoped.values():
            return f"{refused}: add the scope, install the app again; what is owed waits"
        return f"Slack is out of reach: {self._lost_because}" if self._lost >= AWAY_AFTER else ""

    def ask(self) -> None:
        """Before a call: raises Rejected while it is somebody else's turn to find out."""
        if self._rejected is None:
            return
        if self._clock() < self._ask_at:
            raise self._rejected
        self._ask_at = self._clock() + self._pause_s

    def worked(self, method: str) -> None:
        """Slack did what it was asked."""
        self._unscoped.pop(method, None)
        self._heard()

    def failed(self, method: str, error: Exception) -> None:
        """Slack refused, or did not answer."""
        if isinstance(error, Rejected) and kind_of(error.code) is Kind.UNSCOPED:
            if method not in self._unscoped:
                log.warning("slack_refuses_for_want_of_a_scope", error=str(error))
            self._unscoped[method] = error
        elif isinstance(error, Rejected):
            if self._rejected is None:
                log.warning("slack_rejects_us", error=str(error))
                self._pause_s = FIRST_PAUSE_S
            self._rejected = error
            self._ask_at = self._clock() + self._pause_s
            self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2)
        elif isinstance(error, Unreachable | OutcomeUnknown):
            self._lost, self._lost_because = self._lost + 1, str(error)
        elif isinstance(error, Permanent):  # only who is let in is told that
            self._heard()
        else:
            self._lost = 0

    def _heard(self) -> None:
        if self._rejected is not None:
            log.info("slack_takes_us_again")
        self._rejected, self._lost = None, 0

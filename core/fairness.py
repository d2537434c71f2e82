"""Who is served first when more waits than can be worked on at once.

Rule 1: whoever has waited longest goes first.
Rule 2: people go before automation: what a machine asks for counts as if it had come `HEAD_START_S` later.
Rule 3: nobody waits for ever: after that time it stands in the same line.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.arrivals import Source

HEAD_START_S = 30.0

HANDICAP_S: Mapping[Source, float] = {
    Source.MENTION: 0.0,
    Source.THREAD_REPLY: 0.0,
    Source.STOP_REQUEST: 0.0,
    Source.ALERT: HEAD_START_S,
    Source.SCHEDULE: HEAD_START_S,
    # parts of work that has begun: somebody waits for its end already
    Source.SUBAGENT_REPORT: 0.0,
    Source.SUBAGENT_QUESTION: 0.0,
    Source.ANSWER: 0.0,
    Source.JOB: 0.0,
    Source.NOTICE: 0.0,
}
"""So much later a message of this source counts as if it had come."""

"""The log tools as the model sees them. Both only read."""

from __future__ import annotations

from bot.tools.specs import reader
from core.history import Json
from core.tools import ToolSpec

QUERY = "logs_query"
LABELS = "logs_labels"
FEWEST, USUAL, MOST = 10, 1_000, 5_000  # lines; Loki's own limit is 5,000 unless it is set higher

_TIME: dict[str, Json] = {"type": ["string", "number"]}
_FORMS = 'RFC 3339, epoch seconds, "now", or relative like "-1h".'
_START: dict[str, Json] = {**_TIME, "description": f'Begin of the range; default "-1h". {_FORMS}'}
_END: dict[str, Json] = {**_TIME, "description": "End of the range; default now."}


def specs(timeout_s: float) -> tuple[ToolSpec, ...]:
    """The two tools, in a stable order."""
    return (
        reader(
            QUERY,
            timeout_s,
            "Search logs with LogQL. Of lines it returns how many there were over time by level, the most "
            "frequent message patterns (numbers and ids masked) with an example each, and the first and last "
            "lines; of a metric query (rate, count_over_time) statistics of each series. Like "
            '{app="checkout"} |= "error" or sum by (app) (count_over_time({env="prod"} |= "timeout" [1m])). '
            "People in the thread see a chart. Call logs_labels first when you do not know the labels.",
            ["query"],
            query={"type": "string", "minLength": 1, "description": "A LogQL expression."},
            start=_START,
            end=_END,
            limit={
                "type": "integer",
                "minimum": FEWEST,
                "maximum": MOST,
                "description": f"Lines to read at most; default {USUAL}. The newest are read.",
            },
        ),
        reader(
            LABELS,
            timeout_s,
            "Which labels the logs have, with values: of one label, or an overview of all.",
            [],
            label={"type": "string", "minLength": 1, "description": "Only this label, with more values."},
            match={"type": "string", "description": 'Only streams like {env="prod"}.'},
            start=_START,
            end=_END,
        ),
    )

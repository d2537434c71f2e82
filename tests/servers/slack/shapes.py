"""The few types every part of the server shares."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """Slack's answer is no: an error name and whatever else stands in the reply."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more: Json = more

    def reply(self) -> Json:
        return {"ok": False, "error": self.error, **self.more}

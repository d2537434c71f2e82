"""A reason to refuse a request: our name for its kind, and the API's own words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    message: str
    status: int = 400
    error: str = "invalid_request_error"
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> dict[str, Any]:
        error = {"type": self.error, "message": self.message}
        return {"type": "error", "error": error, "request_id": request_id}

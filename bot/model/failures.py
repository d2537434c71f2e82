"""What went wrong with a model request, in one line that names the mend, and whether another try can help.

https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from bot.model.stream import Broken, ErrorEvent

# The status that an error type has when it comes as an HTTP answer. In a stream the HTTP status is 200 and
# says nothing (anthropics/anthropic-sdk-python#1258).
STATUS_OF: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TEMPORARY = frozenset({408, 409, 425, 429})
_LONGEST_LINE = 240


@dataclass(frozen=True, slots=True)
class Failure:
    """`billable`: the provider may have worked on the request, so it is booked by estimate."""

    cause: str
    temporary: bool
    retry_after_s: float | None = None
    billable: bool = False


def failure_of(error: Exception, *, model: str, idle_timeout_s: float) -> Failure:
    """Any exception of a request as a failure."""
    # Imported here: the SDK takes 2 s and 80 MiB, and is loaded by the time anything can fail.
    import httpx2  # noqa: PLC0415
    from anthropic import AnthropicError, APIConnectionError, APIStatusError, APITimeoutError  # noqa: PLC0415

    silence = f"no byte from the model for {idle_timeout_s:g} s"
    if isinstance(error, ErrorEvent):
        status = STATUS_OF.get(error.kind, 500)
        return Failure(_cause(status, str(error), model), is_temporary(status), billable=True)
    if isinstance(error, APIStatusError):
        return _of_status(error.status_code, str(error.api_message or ""), error.response.headers, model)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError) or (
        isinstance(error, APIConnectionError)
        and isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.ConnectError)
    ):
        return Failure("the model's API cannot be reached", temporary=True)
    if isinstance(error, APITimeoutError | httpx2.TimeoutException):
        return Failure(silence, temporary=True, billable=True)
    if isinstance(error, APIConnectionError | httpx2.TransportError):
        return Failure("the connection to the model was lost", temporary=True, billable=True)
    if isinstance(error, Broken | httpx2.HTTPError):
        return Failure(one_line(f"the model's stream was broken: {error}"), temporary=True, billable=True)
    if isinstance(error, AnthropicError | TypeError) and "authentication" in str(error):
        return Failure("no API key for the model; set ANTHROPIC_API_KEY", temporary=False)
    return Failure(
        one_line(f"the model request failed: {type(error).__name__}: {error}"), False, billable=True
    )


def is_temporary(status: int) -> bool:
    """Whether a request that was answered like this is worth another try."""
    return status in _TEMPORARY or status >= 500


def _of_status(status: int, message: str, headers: Mapping[str, str], model: str) -> Failure:
    # "If the server explicitly says whether or not to retry, obey": only where a plain 500 would say nothing.
    final = status == 500 and headers.get("x-should-retry") == "false"
    temporary = is_temporary(status) and not final
    return Failure(_cause(status, message, model), temporary, retry_after_s(headers) if temporary else None)


def _cause(status: int, message: str, model: str) -> str:
    if "prompt is too long" in message:
        return one_line(f"the conversation no longer fits the model's context ({message})")
    told = f": {message}" if message else ""
    match status:
        case 401:
            line = f"the model's API key is not accepted; set a valid ANTHROPIC_API_KEY ({message})"
        case 402:
            line = f"the model's account cannot pay; check its plan and billing ({message})"
        case 403:
            line = f"the API key may not use the model {model}; check its permissions ({message})"
        case 404:
            line = f"the model {model} is not known; set [model] name to one that the key may use ({message})"
        case 413:
            line = f"the request is too large for the model's API; lower the tools' max_bytes ({message})"
        case 429:
            line = f"the model's rate limit is reached{told}"
        case 529:
            line = f"the model is overloaded{told}"
        case _ if is_temporary(status):
            line = f"the model's API failed ({status}){told}"
        case _:
            line = f"the model's API refused the request ({status}){told}"
    return one_line(line)


def one_line(text: str) -> str:
    """The text as one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that the answer asks us to wait, given in milliseconds, in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())

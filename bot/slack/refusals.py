"""What Slack's refusals mean to us: one table from error name to what the caller must do.

Names and texts: the "Errors" tables of docs.slack.dev/reference/methods for each method that we call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.errors import Gone, OutcomeUnknown, Permanent, Rejected, Temporary
from core.history import Json

Refusal: TypeAlias = Temporary | Permanent

RATE_LIMITED = frozenset({"ratelimited", "rate_limited"})
WAIT_WITHOUT_WORD_S = 5.0

# Nothing happened, and it may work later. Migrations and keys take long: minutes, not seconds.
LATER: Mapping[str, float | None] = {
    "service_unavailable": None,
    "request_timeout": None,
    "update_failed": None,
    "streaming_state_conflict": None,
    "team_added_to_org": 300.0,
    "external_channel_migrating": 300.0,
    "ekm_access_denied": 300.0,
}
# "It's possible some aspect of the operation succeeded before the error was raised."
HALF_DONE = frozenset({"internal_error", "fatal_error"})
GONE = frozenset({"message_not_found", "thread_not_found", "channel_not_found", "file_not_found"})
BLOCKS_REFUSED = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "block_mismatch"}
)
# The installation or the token is dead: nothing will work before somebody mends it.
REJECTED = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "app_uninstalled",
        "not_allowed_token_type",
        "user_removed_from_team",
        "team_access_not_granted",
        "access_denied",
        "org_login_required",
    }
)


def refusal(method: str, error: BaseException, *, creates: bool) -> Refusal:
    """Sort one failure of a call. `creates`: after a lost answer one must look before one repeats it."""
    lost = OutcomeUnknown if creates else Temporary
    if isinstance(error, SlackApiError):
        return _said_no(method, error, lost)
    if isinstance(error, aiohttp.ClientConnectorError):  # never got out, so nothing happened
        return Temporary(f"{method}: Slack cannot be reached")
    if isinstance(error, TimeoutError):
        return lost(f"{method}: no answer in time")
    return lost(f"{method}: the answer was lost ({type(error).__name__})")


def _said_no(method: str, error: SlackApiError, lost: type[Temporary]) -> Refusal:
    answer = error.response
    data = getattr(answer, "data", None)
    status = getattr(answer, "status_code", 0)
    headers = getattr(answer, "headers", None) or {}
    code = str(data.get("error") or "") if isinstance(data, dict) else ""
    said = f"{method}: {code or f'HTTP {status}'}"
    if code in RATE_LIMITED or status == 429:
        return Temporary(said, _seconds(headers))
    if code in LATER:
        return Temporary(said, LATER[code])
    if code in HALF_DONE or status >= 500 or not code:
        return lost(said)
    if code in REJECTED:
        return Rejected(said, code)
    if code in GONE:
        return Gone(said, code)
    return Permanent(said + _more(data), code)


def _seconds(headers: Mapping[str, str]) -> float:
    """`Retry-After` in seconds; its name comes in any case."""
    found = {name.lower(): value for name, value in headers.items()}.get("retry-after", "")
    try:
        return max(0.0, float(found))
    except ValueError:
        return WAIT_WITHOUT_WORD_S


def _more(data: Json) -> str:
    """What Slack adds: the scope that is missing, or what is wrong with the blocks. Bounded."""
    if not isinstance(data, dict):
        return ""
    messages = (data.get("response_metadata") or {}).get("messages")
    shown = data.get("needed") or "; ".join(map(str, messages or ())) or ""
    return f" ({str(shown)[:300]})" if shown else ""

"""Sorts whatever went wrong with a call into our errors, by the table of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.errors import (
    Closed,
    Gone,
    Limited,
    OutcomeUnknown,
    Permanent,
    Rejected,
    Temporary,
    Unchangeable,
    Unreachable,
)
from bot.slack.refusal_table import Kind, kind_of
from core.history import Json

Refusal: TypeAlias = Temporary | Permanent

WAIT_WITHOUT_WORD_S = 5.0
SLOW_S = 300.0

FINAL: Mapping[Kind, type[Permanent]] = {
    Kind.REJECTED: Rejected,
    Kind.UNSCOPED: Permanent,
    Kind.GONE: Gone,
    Kind.UNCHANGEABLE: Unchangeable,
    Kind.CLOSED: Closed,
    Kind.FORM: Permanent,
    Kind.REFUSED: Permanent,
}

OWED_BY = frozenset({"chat.postMessage", "chat.update"})
"""Without the right to these nothing that we owe can be paid: it waits, as for a dead installation."""


def refusal(method: str, error: BaseException, *, creates: bool) -> Refusal:
    """Sort one failure of a call. `creates`: after a lost answer one must look before one repeats it."""
    lost = OutcomeUnknown if creates else Unreachable
    if isinstance(error, SlackApiError):
        return _said_no(method, error, lost)
    if isinstance(error, aiohttp.ClientConnectorError):  # never got out, so nothing happened
        return Unreachable(f"{method}: Slack cannot be reached")
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
    kind = Kind.LIMITED if status == 429 else kind_of(code)
    if kind is Kind.LIMITED:
        return Limited(said, _seconds(headers))
    if kind is Kind.AWAY:
        return Unreachable(said)
    if kind is Kind.SLOW:
        return Temporary(said, SLOW_S)
    if kind is Kind.UNCLEAR or status >= 500 or not code:
        return lost(said)
    final = Rejected if kind is Kind.UNSCOPED and method in OWED_BY else FINAL[kind]
    return final(said + _more(data), code)


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

"""Slack's refusals, sorted by what the caller must do."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import Gone, OutcomeUnknown, Permanent, Rejected, Temporary
from bot.slack.refusals import refusal


def said(error: str, status: int = 200, headers: dict[str, str] | None = None, **more: Any) -> SlackApiError:
    data: dict[str, Any] = {"ok": False, "error": error} | more if error else {}
    answer = AsyncSlackResponse(
        client=AsyncWebClient(),
        http_verb="POST",
        api_url="x",
        req_args={},
        data=data,
        headers=headers or {},
        status_code=status,
    )
    return SlackApiError("no", answer)


@pytest.mark.parametrize(
    "error, status, kind, kind_if_it_creates",
    [
        ("ratelimited", 429, Temporary, Temporary),
        ("rate_limited", 200, Temporary, Temporary),
        ("service_unavailable", 200, Temporary, Temporary),
        ("internal_error", 200, Temporary, OutcomeUnknown),
        ("fatal_error", 200, Temporary, OutcomeUnknown),
        ("", 503, Temporary, OutcomeUnknown),
        ("", 200, Temporary, OutcomeUnknown),
        ("message_not_found", 200, Gone, Gone),
        ("channel_not_found", 200, Gone, Gone),
        ("thread_not_found", 200, Gone, Gone),
        ("is_archived", 200, Permanent, Permanent),
        ("is_inactive", 200, Permanent, Permanent),
        ("edit_window_closed", 200, Permanent, Permanent),
        ("cant_update_message", 200, Permanent, Permanent),
        ("not_in_channel", 200, Permanent, Permanent),
        ("invalid_blocks", 200, Permanent, Permanent),
        ("invalid_auth", 200, Rejected, Rejected),
        ("token_expired", 200, Rejected, Rejected),
        ("never_heard_of_it", 200, Permanent, Permanent),
    ],
)
def test_each_refusal_has_its_kind(
    error: str, status: int, kind: type[Exception], kind_if_it_creates: type[Exception]
) -> None:
    assert type(refusal("chat.update", said(error, status), creates=False)) is kind
    assert type(refusal("chat.postMessage", said(error, status), creates=True)) is kind_if_it_creates


@pytest.mark.parametrize(
    "headers, seconds",
    [({"Retry-After": "7"}, 7.0), ({"retry-after": "0"}, 0.0), ({}, 5.0), ({"Retry-After": "x"}, 5.0)],
)
def test_the_time_to_wait_is_slack_s(headers: dict[str, str], seconds: float) -> None:
    found = refusal("chat.update", said("ratelimited", 429, headers), creates=False)
    assert isinstance(found, Temporary)
    assert found.retry_after_s == seconds


def test_a_lost_answer_leaves_the_outcome_unknown_only_where_something_is_made() -> None:
    assert type(refusal("chat.postMessage", TimeoutError(), creates=True)) is OutcomeUnknown
    assert type(refusal("chat.update", TimeoutError(), creates=False)) is Temporary


def test_the_missing_scope_is_named() -> None:
    found = refusal("users.info", said("missing_scope", needed="users:read"), creates=False)
    assert isinstance(found, Permanent)
    assert (found.code, str(found)) == ("missing_scope", "users.info: missing_scope (users:read)")

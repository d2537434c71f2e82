"""Slack's refusals, sorted by what the caller must do."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

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
from bot.slack.methods import METHODS
from bot.slack.refusal_table import DEEDS, KINDS, Kind, kind_of
from bot.slack.refusals import FINAL, refusal


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
        ("ratelimited", 429, Limited, Limited),
        ("rate_limited", 200, Limited, Limited),
        ("service_unavailable", 200, Unreachable, Unreachable),
        ("internal_error", 200, Unreachable, OutcomeUnknown),
        ("fatal_error", 200, Unreachable, OutcomeUnknown),
        ("", 503, Unreachable, OutcomeUnknown),
        ("", 200, Unreachable, OutcomeUnknown),
        ("external_channel_migrating", 200, Temporary, Temporary),
        ("message_limit_exceeded", 200, Temporary, Temporary),
        ("message_not_found", 200, Gone, Gone),
        ("channel_not_found", 200, Closed, Closed),
        ("thread_not_found", 200, Closed, Closed),
        ("is_archived", 200, Closed, Closed),
        ("is_inactive", 200, Closed, Closed),
        ("not_in_channel", 200, Closed, Closed),
        ("restricted_action_thread_locked", 200, Closed, Closed),
        ("edit_window_closed", 200, Unchangeable, Unchangeable),
        ("cant_update_message", 200, Unchangeable, Unchangeable),
        ("invalid_blocks", 200, Permanent, Permanent),
        ("invalid_auth", 200, Rejected, Rejected),
        ("token_expired", 200, Rejected, Rejected),
        ("missing_scope", 200, Rejected, Rejected),
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
    assert type(refusal("chat.update", TimeoutError(), creates=False)) is Unreachable


def test_the_missing_scope_is_named() -> None:
    found = refusal("users.info", said("missing_scope", needed="users:read"), creates=False)
    assert isinstance(found, Permanent)
    assert (found.code, str(found)) == ("missing_scope", "users.info: missing_scope (users:read)")


def test_a_right_that_is_missing_holds_up_only_what_we_owe() -> None:
    lacking = said("missing_scope", needed="reactions:write")
    assert type(refusal("reactions.add", lacking, creates=False)) is Permanent


def test_long_trouble_is_tried_again_after_minutes_and_rests_nobody_else() -> None:
    found = refusal("chat.update", said("external_channel_migrating"), creates=False)
    assert isinstance(found, Temporary)
    assert found.retry_after_s == 300
    assert not isinstance(found, Limited)


def test_for_each_kind_it_is_said_what_is_done() -> None:
    assert set(DEEDS) == set(Kind)
    temporary = {Kind.LIMITED, Kind.AWAY, Kind.UNCLEAR, Kind.SLOW}
    assert set(FINAL) == set(Kind) - temporary


# What docs.slack.dev/reference/methods lists for each method of ours, as of the 26th of May 2026, and what it
# lists for all of them.
EVERYWHERE = """
access_denied account_inactive ekm_access_denied fatal_error internal_error invalid_arguments invalid_auth
missing_scope no_permission not_allowed_token_type not_authed org_login_required ratelimited request_timeout
service_unavailable team_access_not_granted team_added_to_org token_expired token_revoked
two_factor_setup_required
"""
DOCUMENTED = {
    "auth.test": "",
    "bots.info": "bot_not_found bots_not_found missing_argument team_not_found",
    "chat.postMessage": """
        app_access_restricted cannot_reply_to_message channel_not_found invalid_blocks
        invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_archived
        message_limit_exceeded messages_tab_disabled metadata_must_be_sent_from_app metadata_too_large
        msg_blocks_too_long no_text not_in_channel rate_limited restricted_action
        restricted_action_non_threadable_channel restricted_action_read_only_channel
        restricted_action_thread_locked restricted_action_thread_only_channel
        slack_connect_canvas_sharing_blocked slack_connect_file_link_sharing_blocked
        slack_connect_lists_sharing_blocked team_not_found
    """,
    "chat.postEphemeral": """
        cannot_reply_to_message channel_not_found invalid_blocks invalid_blocks_format is_archived
        message_limit_exceeded messages_tab_disabled msg_too_long no_text not_in_channel restricted_action
        user_not_in_channel
    """,
    "chat.update": """
        block_mismatch cant_update_message channel_not_found edit_window_closed external_channel_migrating
        file_deleted file_is_deleted file_not_found invalid_blocks invalid_blocks_format
        invalid_metadata_format invalid_metadata_schema is_inactive message_limit_exceeded
        message_not_found metadata_must_be_sent_from_app metadata_too_large msg_too_long no_text
        streaming_state_conflict team_not_found update_failed
    """,
    "chat.delete": "cant_delete_message channel_not_found message_not_found",
    "conversations.history": """
        channel_is_limited_access channel_not_found invalid_cursor invalid_ts_latest invalid_ts_oldest
        not_in_channel
    """,
    "conversations.replies": """
        channel_not_found invalid_cursor invalid_ts_latest invalid_ts_oldest
        method_not_supported_for_channel_type thread_not_found
    """,
    "files.getUploadURLExternal": """
        file_type_not_allowed file_upload_size_restricted file_uploads_disabled
        file_uploads_except_images_disabled missing_argument storage_limit_reached
    """,
    "files.completeUploadExternal": """
        file_not_found file_type_not_allowed file_update_failed file_uploads_except_images_disabled
    """,
    "reactions.add": """
        already_reacted bad_timestamp channel_not_found external_channel_migrating invalid_name
        is_archived message_not_found no_access no_item_specified not_reactable thread_locked
        too_many_emoji too_many_reactions
    """,
    "reactions.remove": """
        bad_timestamp channel_not_found external_channel_migrating invalid_name message_not_found
        no_access no_item_specified no_reaction thread_locked
    """,
    "users.conversations": """
        invalid_cursor invalid_limit invalid_types method_not_supported_for_channel_type missing_argument
    """,
    "users.info": "user_not_found user_not_visible",
}


@pytest.mark.parametrize("method", METHODS)
def test_every_refusal_that_slack_documents_stands_in_the_table(method: str) -> None:
    missing = set(f"{EVERYWHERE} {DOCUMENTED[method]}".split()) - set(KINDS)
    assert missing == set()


def test_what_slack_never_named_before_is_refused_and_not_repeated() -> None:
    assert kind_of("never_heard_of_it") is Kind.REFUSED

"""What each of Slack's refusals means, from error to kind, and what becomes of it, from kind to deed.

Rule 1: an error that is not listed is `REFUSED`; nothing is repeated on a guess.
Rule 2: every error that Slack documents for a method of ours is listed, unless only an argument that we do
not send could cause it.

Names and texts: the "Errors" tables of docs.slack.dev/reference/methods for each method that we call.
`docs.draw` draws both tables into docs/slack.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of failure."""

    LIMITED = "too many calls"
    AWAY = "Slack is out of order"
    UNCLEAR = "the outcome is unknown"
    SLOW = "it will take long"
    REJECTED = "the installation is dead"
    UNSCOPED = "a right is missing"
    GONE = "the message is gone"
    UNCHANGEABLE = "the message cannot be changed"
    CLOSED = "the place is closed to us"
    FORM = "Slack refuses the form"
    REFUSED = "anything else"


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done, in words for people; the keepers of cards and of posts do it."""

    card: str
    post: str


_WAITS = "waits, tried again with growing pauses of up to 30 s; the newest state only"
_POST_WAITS = "waits in order, tried again with growing pauses of up to 30 s"
_GIVEN_UP = "given up with a record; tried once more when the turn ends"
_TOLD = "given up with a record; who began the conversation is sent it directly, where Slack allows that"

DEEDS: Mapping[Kind, Deed] = {
    Kind.LIMITED: Deed(
        "the whole method rests for `Retry-After`; then the newest state only, releases first",
        "the whole method rests for `Retry-After`; then goes on in order",
    ),
    Kind.AWAY: Deed(_WAITS, _POST_WAITS),
    Kind.UNCLEAR: Deed(
        "looked for in the thread before it is posted again; an update is repeated",
        "looked for in the thread before it is posted again; of two found the later is deleted",
    ),
    Kind.SLOW: Deed("waits, tried again every five minutes", "waits, tried again every five minutes"),
    Kind.REJECTED: Deed(
        "everything waits; now and then one call finds out whether it still is; `/readyz` names the mend",
        "everything waits, nothing is given up; with a new token it goes on at the next start",
    ),
    Kind.UNSCOPED: Deed(
        "posting and updating: as a dead installation; anything else does without and says so in the log",
        "as for the card",
    ),
    Kind.GONE: Deed(
        "while the turn runs a new one is posted, once; a card that was to be released is done with",
        _TOLD,
    ),
    Kind.UNCHANGEABLE: Deed(
        "deleted where that is allowed, and posted anew: once while the turn runs, once to say how it ended",
        "no post is ever changed",
    ),
    Kind.CLOSED: Deed(f"{_GIVEN_UP}, and when another card of the thread was taken", _TOLD),
    Kind.FORM: Deed(
        "drawn more simply: rich, plain blocks, words, one line with the state",
        "said more simply: blocks, words, the beginning of the words",
    ),
    Kind.REFUSED: Deed(_GIVEN_UP, _TOLD),
}

KINDS: Mapping[str, Kind] = {
    "ratelimited": Kind.LIMITED,
    "rate_limited": Kind.LIMITED,
    # Nothing happened, and it may work soon.
    "service_unavailable": Kind.AWAY,
    "request_timeout": Kind.AWAY,
    "update_failed": Kind.AWAY,
    "streaming_state_conflict": Kind.AWAY,
    # "It's possible some aspect of the operation succeeded before the error was raised."
    "internal_error": Kind.UNCLEAR,
    "fatal_error": Kind.UNCLEAR,
    # Migrations, keys, and a free plan's limits.
    "team_added_to_org": Kind.SLOW,
    "external_channel_migrating": Kind.SLOW,
    "ekm_access_denied": Kind.SLOW,
    "message_limit_exceeded": Kind.SLOW,
    # Nothing will work before somebody mends the installation.
    "invalid_auth": Kind.REJECTED,
    "not_authed": Kind.REJECTED,
    "account_inactive": Kind.REJECTED,
    "token_revoked": Kind.REJECTED,
    "token_expired": Kind.REJECTED,
    "app_uninstalled": Kind.REJECTED,
    "not_allowed_token_type": Kind.REJECTED,
    "user_removed_from_team": Kind.REJECTED,
    "team_access_not_granted": Kind.REJECTED,
    "access_denied": Kind.REJECTED,
    "org_login_required": Kind.REJECTED,
    "two_factor_setup_required": Kind.REJECTED,
    "missing_scope": Kind.UNSCOPED,
    "no_permission": Kind.UNSCOPED,
    "message_not_found": Kind.GONE,
    "file_not_found": Kind.GONE,
    "file_deleted": Kind.GONE,
    "file_is_deleted": Kind.GONE,
    "cant_update_message": Kind.UNCHANGEABLE,
    "cant_delete_message": Kind.UNCHANGEABLE,
    "edit_window_closed": Kind.UNCHANGEABLE,
    "is_archived": Kind.CLOSED,
    "is_inactive": Kind.CLOSED,
    "not_in_channel": Kind.CLOSED,
    "channel_not_found": Kind.CLOSED,
    "channel_is_limited_access": Kind.CLOSED,
    "team_not_found": Kind.CLOSED,
    "thread_not_found": Kind.CLOSED,
    "thread_locked": Kind.CLOSED,
    "cannot_reply_to_message": Kind.CLOSED,
    "app_access_restricted": Kind.CLOSED,
    "restricted_action": Kind.CLOSED,
    "restricted_action_non_threadable_channel": Kind.CLOSED,
    "restricted_action_read_only_channel": Kind.CLOSED,
    "restricted_action_thread_locked": Kind.CLOSED,
    "restricted_action_thread_only_channel": Kind.CLOSED,
    "invalid_blocks": Kind.FORM,
    "invalid_blocks_format": Kind.FORM,
    "msg_blocks_too_long": Kind.FORM,
    "msg_too_long": Kind.FORM,
    "block_mismatch": Kind.FORM,
    # Given up: another try would be refused too.
    "already_reacted": Kind.REFUSED,
    "no_reaction": Kind.REFUSED,
    "not_reactable": Kind.REFUSED,
    "no_access": Kind.REFUSED,
    "too_many_emoji": Kind.REFUSED,
    "too_many_reactions": Kind.REFUSED,
    "bad_timestamp": Kind.REFUSED,
    "invalid_name": Kind.REFUSED,
    "no_item_specified": Kind.REFUSED,
    "user_not_in_channel": Kind.REFUSED,
    "user_not_found": Kind.REFUSED,
    "user_not_visible": Kind.REFUSED,
    "users_not_found": Kind.REFUSED,
    "bot_not_found": Kind.REFUSED,
    "bots_not_found": Kind.REFUSED,
    "messages_tab_disabled": Kind.REFUSED,
    "no_text": Kind.REFUSED,
    "invalid_metadata_format": Kind.REFUSED,
    "invalid_metadata_schema": Kind.REFUSED,
    "metadata_must_be_sent_from_app": Kind.REFUSED,
    "metadata_too_large": Kind.REFUSED,
    "invalid_cursor": Kind.REFUSED,
    "invalid_limit": Kind.REFUSED,
    "invalid_types": Kind.REFUSED,
    "invalid_ts_latest": Kind.REFUSED,
    "invalid_ts_oldest": Kind.REFUSED,
    "method_not_supported_for_channel_type": Kind.REFUSED,
    "missing_argument": Kind.REFUSED,
    "invalid_arguments": Kind.REFUSED,
    "slack_connect_canvas_sharing_blocked": Kind.REFUSED,
    "slack_connect_file_link_sharing_blocked": Kind.REFUSED,
    "slack_connect_lists_sharing_blocked": Kind.REFUSED,
    "file_type_not_allowed": Kind.REFUSED,
    "file_update_failed": Kind.REFUSED,
    "file_uploads_disabled": Kind.REFUSED,
    "file_uploads_except_images_disabled": Kind.REFUSED,
    "file_upload_size_restricted": Kind.REFUSED,
    "storage_limit_reached": Kind.REFUSED,
    "unknown_method": Kind.REFUSED,
    "method_deprecated": Kind.REFUSED,
}


def kind_of(code: str) -> Kind:
    """The kind of an error that Slack named."""
    return KINDS.get(code, Kind.REFUSED)

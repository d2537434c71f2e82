"""Posting, updating and deleting messages."""

from __future__ import annotations

import time
import urllib.parse
from typing import Any

from tests.servers.slack.args import Args
from tests.servers.slack.blocks import checked_blocks
from tests.servers.slack.calls import Call, Violation
from tests.servers.slack.clock import is_ts
from tests.servers.slack.messages import Message
from tests.servers.slack.metadata import checked_metadata
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import Ephemeral, State
from tests.servers.slack.workspace import APP, BOT, BOT_USER, TEAM, Channel

MOST_POSTED = 40_000
MOST_UPDATED = 4_000
MOST_MARKDOWN = 12_000
MOST_ATTACHMENTS = 100


def post(state: State, call: Call, args: Args) -> Json:
    channel = postable(state, args.need("channel", "channel_not_found"))
    text, blocks, attachments = _content(state, args, MOST_POSTED)
    metadata, warnings = checked_metadata(args.value("metadata", "invalid_metadata_format"))
    thread_ts = thread_of(state, channel, args)
    broadcast = thread_ts is not None and args.flag("reply_broadcast")
    message = Message(
        channel=channel.id,
        ts=state.clock.ts(),
        user=BOT_USER,
        text=text,
        team=TEAM,
        blocks=with_ids(state, blocks or []),
        attachments=attachments or [],
        thread_ts=thread_ts,
        subtype="thread_broadcast" if broadcast else None,
        metadata=metadata,
        bot_id=BOT,
        app_id=APP,
        bot_profile=state.workspace.users[BOT_USER].bot_profile(),
    )
    state.add(message, channel, call)
    state.announce(message, channel)
    return {"channel": channel.id, "ts": message.ts, "message": message.json(metadata=True)} | _warned(
        warnings
    )


def update(state: State, call: Call, args: Args) -> Json:
    """Blocks vanish when only text is given; metadata stays unless given anew."""
    channel = state.workspace.visible_channel(args.need("channel", "channel_not_found"))
    if channel.archived:
        raise Refused("is_inactive")
    message = _own(channel, args.need("ts", "message_not_found"), "cant_update_message")
    window = state.edit_window_s
    if window is not None and time.time() - float(message.ts) > window:
        raise Refused("edit_window_closed")
    text, blocks, attachments = _content(state, args, MOST_UPDATED)
    given = args.value("metadata", "invalid_metadata_format")
    metadata, warnings = checked_metadata(given)
    before = message.json()
    if blocks is not None or args.text("text") is not None:
        _check_rich_text_stays(message, blocks)
        message.text = text
        message.blocks = with_ids(state, blocks or [])
    if attachments is not None:
        message.attachments = attachments
    if given is not None and not warnings:
        message.metadata = metadata
    if blocks is None and attachments is None:
        message.edited = {"user": BOT_USER, "ts": state.clock.ts()}
    state.changed(message, before, channel, call)
    shown = {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": message.json(metadata=True),
    }
    return shown | _warned(warnings)


def delete(state: State, call: Call, args: Args) -> Json:
    channel = state.workspace.visible_channel(args.need("channel", "channel_not_found"))
    message = _own(channel, args.need("ts", "message_not_found"), "cant_delete_message")
    state.deleted(message, channel)
    return {"channel": channel.id, "ts": message.ts}


def post_ephemeral(state: State, call: Call, args: Args) -> Json:
    channel = postable(state, args.need("channel", "channel_not_found"))
    user = args.need("user", "user_not_in_channel")
    text, blocks, _ = _content(state, args, MOST_POSTED)
    if user not in channel.members:
        raise Refused("user_not_in_channel")
    ts = state.clock.ts()
    state.ephemerals.append(Ephemeral(channel.id, user, text, blocks or [], args.text("thread_ts"), ts))
    state.bell.ring()
    return {"message_ts": ts}


def permalink(state: State, call: Call, args: Args) -> Json:
    channel = state.workspace.visible_channel(args.need("channel", "channel_not_found"))
    message = channel.messages.get(args.need("message_ts", "message_not_found"))
    if message is None or message.deleted:
        raise Refused("message_not_found")
    link = f"https://watch.slack.com/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.is_reply:
        link += "?" + urllib.parse.urlencode({"thread_ts": message.thread_ts or "", "cid": channel.id})
    return {"channel": channel.id, "permalink": link}


def postable(state: State, where: str) -> Channel:
    """The channel if the bot may write there; a user's id means the direct message with them."""
    if where in state.workspace.users:
        if not state.messages_tab:
            raise Refused("messages_tab_disabled")
        return state.workspace.dm(where)
    channel = state.workspace.visible_channel(where)
    if channel.archived:
        raise Refused("is_archived")
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    return channel


def thread_of(state: State, channel: Channel, args: Args) -> str | None:
    """The root to reply to. Naming a reply instead of its root is taken amiss."""
    named = args.text("thread_ts")
    if named is None:
        return None
    if not is_ts(named):
        raise Refused("invalid_thread_ts")
    root = channel.messages.get(named)
    if root is None or root.deleted:
        raise Refused("thread_not_found")
    if root.is_reply:
        state.violations.append(Violation("thread_ts", f"{named} is a reply, not a root", args.raw))
    thread_ts = root.thread_ts or root.ts
    if thread_ts in channel.locked_threads:
        raise Refused("restricted_action_thread_locked")
    return thread_ts


def usable_file(state: State, named: Json) -> bool:
    """Whether an image block may show this file."""
    for file in state.files.values():
        if named.get("id") == file.id or str(named.get("url", "")).endswith(f"/{file.id}/{file.name}"):
            return file.usable and file.is_image
    return False


def with_ids(state: State, blocks: list[Json]) -> list[Json]:
    """Slack names the blocks that the app left unnamed."""
    return [{**block, "block_id": block.get("block_id") or f"b{state.number()}"} for block in blocks]


def _content(state: State, args: Args, most: int) -> tuple[str, list[Json] | None, list[Json] | None]:
    text = args.text("text") or ""
    blocks = args.value("blocks", "invalid_blocks_format")
    attachments = args.value("attachments", "invalid_attachments")
    markdown = args.text("markdown_text")
    if markdown is not None:
        if text or blocks:
            raise Refused("markdown_text_conflict")
        if len(markdown) > MOST_MARKDOWN:
            raise Refused("msg_too_long")
        text, blocks = markdown, [{"type": "markdown", "text": markdown}]
    if len(text) > most:
        raise Refused("msg_too_long")
    checked = None if blocks is None else checked_blocks(blocks, lambda named: usable_file(state, named))
    if attachments is not None and not _are_attachments(attachments):
        raise Refused("invalid_attachments")
    if attachments is not None and len(attachments) > MOST_ATTACHMENTS:
        raise Refused("too_many_attachments")
    if not text and not checked and not attachments:
        raise Refused("no_text")
    return text, checked, attachments


def _check_rich_text_stays(message: Message, blocks: list[Json] | None) -> None:
    rich = [block for block in message.blocks if block["type"] == "rich_text"]
    if (
        rich
        and len(rich) == len(message.blocks)
        and blocks
        and not any(b["type"] == "rich_text" for b in blocks)
    ):
        raise Refused("block_mismatch")


def _are_attachments(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(inner, dict) for inner in value)


def _own(channel: Channel, ts: str, otherwise: str) -> Message:
    message = channel.messages.get(ts)
    if message is None or message.deleted:
        raise Refused("message_not_found")
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    if message.bot_id != BOT:
        raise Refused(otherwise)
    return message


def _warned(warnings: list[str]) -> Json:
    if not warnings:
        return {}
    return {"warning": ",".join(warnings), "response_metadata": {"warnings": warnings}}

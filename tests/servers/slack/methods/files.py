"""Uploads in Slack's three steps: ask for a URL, send the bytes, complete."""

from __future__ import annotations

import time

from tests.servers.slack.args import Args
from tests.servers.slack.calls import Call
from tests.servers.slack.messages import Message
from tests.servers.slack.methods.chat import postable, thread_of
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import File, State
from tests.servers.slack.workspace import APP, BOT, BOT_USER, TEAM


def upload_url(state: State, call: Call, args: Args) -> Json:
    length = args.number("length", 0)
    if length <= 0:
        raise Refused("invalid_arguments")
    number = state.number()
    file = File(f"F0FILE{number:05d}", args.need("filename"), length, ticket=f"up-{number:05d}")
    state.files[file.id] = file
    return {"upload_url": f"{state.url}/upload/v1/{file.ticket}", "file_id": file.id}


def complete(state: State, call: Call, args: Args) -> Json:
    asked = args.value("files", "invalid_arguments")
    if not isinstance(asked, list) or not asked:
        raise Refused("invalid_arguments")
    found = [_uploaded(state, item) for item in asked]
    channels = [c for c in [args.text("channel_id"), *(args.text("channels") or "").split(",")] if c]
    for where in channels:
        channel = postable(state, where)
        thread_of(state, channel, args)
    for file, item in zip(found, asked, strict=True):
        file.title = str(item.get("title") or file.name)
        file.usable_at = time.monotonic() + state.file_processing_s
        file.channels = channels
    for where in channels:
        _share(state, call, where, found, args)
    state.bell.ring()
    return {"files": [file_json(state, file) for file in found]}


def info(state: State, call: Call, args: Args) -> Json:
    file = state.files.get(args.need("file", "file_not_found"))
    if file is None or file.usable_at is None:
        raise Refused("file_not_found")
    return {"file": file_json(state, file), "comments": [], "response_metadata": {"next_cursor": ""}}


def file_json(state: State, file: File) -> Json:
    """Until the file is digested its type is not known."""
    return {
        "id": file.id,
        "name": file.name,
        "title": file.title or file.name,
        "mimetype": file.mimetype if file.usable else "",
        "filetype": file.name.rpartition(".")[2].lower() if file.usable else "",
        "size": file.length,
        "user": file.user,
        "mode": "hosted",
        "url_private": f"{state.url}/files/{file.id}/{file.name}",
        "permalink": f"https://watch.slack.com/files/{file.user}/{file.id}/{file.name}",
        "channels": list(file.channels),
    }


def _uploaded(state: State, item: Json) -> File:
    file = state.files.get(str(item.get("id")))
    if file is None or file.content is None or file.usable_at is not None:
        raise Refused("file_not_found")
    return file


def _share(state: State, call: Call, where: str, found: list[File], args: Args) -> None:
    """A shared file is a message of its own, which cannot carry metadata."""
    channel = postable(state, where)
    message = Message(
        channel=channel.id,
        ts=state.clock.ts(),
        user=BOT_USER,
        text=args.text("initial_comment") or "",
        team=TEAM,
        files=[file_json(state, file) for file in found],
        thread_ts=thread_of(state, channel, args),
        subtype="file_share",
        bot_id=BOT,
        app_id=APP,
    )
    state.add(message, channel, call)
    state.announce(message, channel)

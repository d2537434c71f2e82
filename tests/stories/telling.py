"""How a story is told: what people say and press, what tools do, and what must hold once it is over."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from core.history import Json
from tests.invariants import broken
from tests.servers.anthropic.blocks import Block, call, text
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import reply
from tests.servers.slack.calls import Call
from tests.servers.slack.messages import Message
from tests.servers.slack.state import Ephemeral
from tests.stories.room import Room, eventually

CARD, NOTE, ANSWER = "watchkeeper_card", "watchkeeper_note", "watchkeeper_answer"


@asynccontextmanager
async def story(folder: Path, **changes: Any) -> AsyncIterator[Room]:
    """A room with Watchkeeper in it; once the story is told, everything must be at rest and nothing wrong."""
    async with Room(folder, **changes) as room:
        await room.start()
        yield room
        await must_be_well(room)


async def must_be_well(room: Room, *, left_live: int = 0) -> None:
    """What holds after every story, once its last word has been delivered.

    `left_live` is the number of cards that Slack let nobody touch any more while they were live.
    """
    if found := await wrongs_that_stay(room, left_live):
        raise AssertionError("\n".join([*found, room.slack.dump()]))


async def wrongs_that_stay(room: Room, left_live: int = 0) -> list[str]:
    """Everything that is still not as it must be at rest after a while."""

    async def well() -> bool:
        return not await wrongs(room, left_live)

    with suppress(AssertionError):
        await eventually(well, timeout=5)
    return await wrongs(room, left_live)


async def wrongs(room: Room, left_live: int = 0) -> list[str]:
    """Everything that is not as it must be at rest, in Slack, at the model, and in the records."""
    found = room.slack.card_faults()
    if room.process is None:  # one that was killed may not have heard that a release was taken
        found += room.slack.edits_after_release()
    if len(live := room.slack.live_cards()) != left_live:
        found += [f"live card {card.ts}" for card in live] or ["no live card was left"]
    found += [f"Slack was overrun: {violation}" for violation in room.slack.violations]
    found += [f"refused by the model: {request.fault}" for request in room.model.refused]
    return found + await broken(await room.records(), at_rest=True)


# --- what people do -----------------------------------------------------------------------------------------


async def ask(room: Room, words: str = "why is checkout slow?", who: str = "Ana") -> str:
    """Somebody mentions us in the channel; returns the thread."""
    return await room.slack.say(who, "#inc", words, mention=True)


async def reply_to(room: Room, thread: str, words: str, who: str = "Ben", *, mention: bool = False) -> str:
    """Somebody writes in the thread, and it has been decided what that does; returns the message's ts."""
    ts = await room.slack.say(who, "#inc", words, thread=thread, mention=mention)
    await until_decided(room, thread, ts)
    return ts


async def press_stop(room: Room, who: str = "Ana", *, version: int = -1) -> None:
    """Somebody presses Stop on the newest card; with `version` on what it showed earlier."""
    card = room.slack.of_type(CARD)[-1]
    await room.slack.click(card.ts, "watchkeeper_stop", who, version=version)


async def until_decided(room: Room, thread: str, ts: str) -> dict[str, Json]:
    """The message as `show` tells it, once its effect is fixed."""
    found: dict[str, Json] = {}

    async def decided() -> bool:
        for message in await messages(room, thread):
            if str(message["id"]).endswith(f":{ts}") and message["effect"]:
                found.update(message)
        return bool(found)

    await eventually(decided, timeout=20)
    return found


def conversation(room: Room, thread: str) -> str:
    """The id of a thread in the channel of these stories."""
    return f"slack:{room.slack.team_id}:C0INC00001:{thread}"


async def messages(room: Room, thread: str) -> list[dict[str, Json]]:
    """The conversation's messages as `show` tells them, none before it exists."""
    try:
        shown = await room.shown(conversation(room, thread))
    except AssertionError:
        return []
    return list(shown["messages"])


async def effects(room: Room, thread: str) -> list[str]:
    """What each message did, in the order in which they came."""
    return [str(message["effect"]) for message in await messages(room, thread)]


async def calls_of(room: Room, thread: str) -> list[dict[str, Json]]:
    """The conversation's tool calls as `show` tells them."""
    turns: list[dict[str, Json]] = list((await room.shown(conversation(room, thread)))["turns"])
    return [one for turn in turns for step in turn["steps"] for one in step["calls"]]


async def works(room: Room, *names: str) -> str:
    """An analysis that stands in a held call, its card posted; each name is a step with such a call."""
    steps = [reply(held(room, name)) for name in names or ("r",)]
    room.model.script(*steps, reply(text("it is the deploy")))
    ts = await ask(room)
    await until_reached(room, (names or ("r",))[0])
    await room.slack.wait_for(lambda slack: slack.live_cards(), timeout=10)
    return ts


# --- what tools do ------------------------------------------------------------------------------------------


def held(room: Room, name: str, tool: str = "probe__hold", **more: Any) -> Block:
    """A call that the tool server holds until it is released."""
    return call(tool, {"name": name, "directory": str(room.folder)}, **more)


async def until_reached(room: Room, *names: str) -> None:
    """Wait until the tool server holds these calls."""
    paths = [room.folder / f"{name}.reached" for name in names]

    async def there() -> bool:
        return all(path.exists() for path in paths)

    await eventually(there, timeout=20)


def release(room: Room, *names: str) -> None:
    """Let held calls go on."""
    for name in names:
        (room.folder / f"{name}.release").touch()


async def until_started(room: Room, *tools: str) -> None:
    """Wait until the tool server has been called so."""

    async def started() -> bool:
        names = [event["tool"] for event in room.tool_events()]
        return all(tool in names for tool in tools)

    await eventually(started, timeout=20)


# --- what is seen -------------------------------------------------------------------------------------------


def receipts(room: Room, ts: str) -> list[str]:
    """Our reactions on a message, in the order in which they were set."""
    return [one.name for one in room.slack.reacted if one.ts == ts and one.added]


def receipt(room: Room, ts: str) -> list[str]:
    """Our reaction on a message now."""
    return list(room.slack.reactions(ts))


def said_by_people(request: ModelRequest) -> list[str]:
    """The words of people in a request, without what surrounds them, in order."""
    return [
        text.split("\n", 1)[1].rsplit("\n", 1)[0] for text in request.user_texts() if text[:9] == "<message "
    ]


def newest_results(request: ModelRequest) -> list[str]:
    """What the calls came back with, in order, without what surrounds it."""
    return [one.text.split("\n", 1)[1].rsplit("\n", 1)[0] for one in request.tool_results().values()]


async def until_card_says(room: Room, words: str, timeout: float = 10) -> Message:
    """The newest card, once it shows these words."""

    def saying() -> list[Message]:
        return [card for card in room.slack.of_type(CARD)[-1:] if words in card.text]

    await room.slack.wait_for(lambda _: saying() or None, timeout=timeout)
    return room.slack.of_type(CARD)[-1]


def has_stop_button(blocks: list[dict[str, Json]]) -> bool:
    """Whether a message's blocks bear our Stop button."""
    return "watchkeeper_stop" in str(blocks)


async def until_told(room: Room, who: str, count: int = 1, within: float = 10) -> list[Ephemeral]:
    """What somebody was told privately, once it is so many."""
    user = room.slack.state.workspace.user(who).id
    await room.slack.wait_for(lambda slack: len(told(room, user)) >= count, timeout=within)
    return told(room, user)


def is_card(args: dict[str, Json]) -> bool:
    """Whether the arguments of a call show a card."""
    return CARD in str(args.get("metadata"))


def is_released(args: dict[str, Json]) -> bool:
    """Whether they show a released one."""
    return is_card(args) and "released" in str(args.get("metadata"))


def card_posts(room: Room) -> list[Call]:
    """The calls that posted a card."""
    return [call for call in room.slack.calls_of("chat.postMessage") if is_card(call.args)]


def told(room: Room, user: str) -> list[Ephemeral]:
    """What a user was told privately so far."""
    return [one for one in room.slack.ephemerals if one.user == user]


def notes(room: Room, kind: str) -> list[str]:
    """The texts of our notes of a kind."""
    return [str(note["text"]) for note in room.posts() if note["kind"] == kind]


# --- what goes wrong ----------------------------------------------------------------------------------------


@asynccontextmanager
async def locked(room: Room) -> AsyncIterator[None]:
    """Somebody else writes to the database: whatever Watchkeeper wants to write waits in its line."""
    other = sqlite3.connect(room.folder / "watchkeeper.db", isolation_level=None, timeout=0)

    async def taken() -> bool:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True

    try:
        await eventually(taken, timeout=5)
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


async def quiet(seconds: float = 0.3) -> None:
    """Long enough for whatever should not happen."""
    await asyncio.sleep(seconds)

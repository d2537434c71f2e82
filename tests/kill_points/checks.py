"""What must hold after a run, over the database and over what the test servers wrote down themselves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from core.history import Json
from core.tools import Outcome, ToolClass
from storage.tables import calls, inbox
from tests.kill_points.scenario import QUESTION, STEER, Analysis
from tests.kill_points.world import World
from tests.stories.telling import ANSWER, CARD, wrongs

GOES_ON = {"steered", "drained", "stale"}


async def faults(world: World, analysis: Analysis, *, somebody_froze: bool = False) -> list[str]:
    """Everything that is not as it must be once a run has come to rest; empty when all is well."""
    records = await world.settles()
    return [
        *(wrong for wrong in await wrongs(world) if not (somebody_froze and is_mended(world, wrong))),
        *_ending(records),
        *_releases(world, records),
        *_side_effects(world),
        *await _told_what_happened(world),
        *_posted_twice(world),
        *_what_people_said(world, analysis),
        *await _acknowledged_and_not_stored(world),
    ]


def is_mended(world: World, wrong: str) -> bool:
    """Whether it is the one late call of a process that was frozen: its reaction stood for a moment."""
    message, _, rest = wrong.partition(": reaction ")
    return "set while" in rest and len(world.slack.reactions(message)) == 1


def _ending(records: list[dict[str, Json]]) -> list[str]:
    """The work went on until it was completed, once."""
    reasons = [str(record["reason"]) for record in records]
    if reasons[-1:] == ["completed"] and set(reasons[:-1]) <= {*GOES_ON, "completed"}:
        return []
    return [f"the turns ended {reasons}"]


def _releases(world: World, records: list[dict[str, Json]]) -> list[str]:
    """Slack was shown the release of every turn, or a later turn took its message over."""
    over: set[str] = set()
    for message in world.slack.bot_messages():
        bearers: list[str] = []
        for version in message.versions:
            metadata = version.metadata or {}
            if metadata.get("event_type") != CARD:
                continue
            payload = metadata["event_payload"]
            turn = str(payload["turn_id"])
            if payload["state"] == "released":
                over.add(turn)
            over.update(one for one in bearers if one != turn)
            bearers.append(turn)
    shown = {str((m.metadata or {})["event_payload"]["turn_id"]) for m in world.slack.of_type(CARD)} | over
    unseen = [str(r["turn_id"]) for r in records if r["turn_id"] not in over]
    # A turn that was over before its card was posted never shows: its successor's card stands for it.
    return [f"Slack never saw the release of {turn}" for turn in unseen if turn in shown]


def _side_effects(world: World) -> list[str]:
    """Each side effect began at most once, by its call and by what it does."""
    begun = [event for event in world.tool_events() if event["tool"] in ("hold_write", "restart")]
    by_call = Counter(str(event["call_id"]) for event in begun)
    by_deed = Counter(json.dumps([event["tool"], event["args"]]) for event in begun)
    return [f"side effect begun {n} times: {what}" for what, n in (by_call | by_deed).items() if n > 1]


async def _told_what_happened(world: World) -> list[str]:
    """What the records say of a side effect is what the tool server wrote down itself."""
    begun = {event["call_id"] for event in world.tool_events("started")}
    ended = {event["call_id"] for event in world.tool_events("finished")}
    database = await world.records()
    rows = await database.read(_outcomes)
    return [
        f"side effect {call_id} is {outcome} and was {'begun' if call_id in begun else 'never begun'}"
        for call_id, outcome in rows
        if (outcome == Outcome.NOT_EXECUTED and call_id in begun)
        or (outcome == Outcome.OK and call_id not in ended)
    ]


async def _outcomes(tx: AsyncConnection) -> list[tuple[str, str | None]]:
    where = calls.c.tool_class == ToolClass.SIDE_EFFECT
    rows = (await tx.execute(select(calls.c.id, calls.c.outcome).where(where))).all()
    return [(row.id, row.outcome) for row in rows]


def _posted_twice(world: World) -> list[str]:
    """Each part of an answer stands once in the thread, and each turn names one card."""
    answers = (
        (post.get("turn_id"), post.get("final_event_id"), post.get("part")) for post in world.posts(ANSWER)
    )
    cards = (post.get("turn_id") for post in world.posts(CARD))
    notes = (post.get("post_id") for post in world.posts())
    return [
        *_twice("answer", answers),
        *_twice("card of turn", cards),
        *_twice("note", (note for note in notes if note is not None)),
        *([] if world.posts(ANSWER) else ["no answer stands in the thread"]),
    ]


def _twice(what: str, found: Iterable[object]) -> list[str]:
    return [f"{what} {key} stands {n} times" for key, n in Counter(found).items() if n > 1]


def _what_people_said(world: World, analysis: Analysis) -> list[str]:
    """The model was told both messages, each once in its request."""
    told = [request.user_texts() for request in world.model.requests]
    found = []
    for words in (QUESTION, STEER):
        counts = [sum(words in one for one in texts) for texts in told]
        if max(counts, default=0) != 1:
            found.append(f"the model was told {words!r} {max(counts, default=0)} times")
    return found


async def _acknowledged_and_not_stored(world: World) -> list[str]:
    """Whatever Slack was told is received has its row, and nothing that people wrote stayed unreceived."""
    database = await world.records()
    keys = await database.read(_keys)
    found = []
    for delivery in world.slack.deliveries:
        if delivery.type not in ("message", "app_mention") or delivery.event.get("bot_id"):
            continue
        ts = str(delivery.event["ts"])
        stored = any(key.endswith(f":{ts}") for key in keys)
        if delivery.acked and not stored:
            found.append(f"acknowledged and not stored: {delivery.type} {ts}")
        elif not delivery.acked:
            found.append(f"never acknowledged: {delivery.type} {ts}")
    return found


async def _keys(tx: AsyncConnection) -> list[str]:
    return list((await tx.execute(select(inbox.c.key))).scalars())

"""Gathers what is known of a run: from the records, Slack, the model, the tool server and the logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage import reports
from storage.tables import conversations, inbox, turns
from tests.fleet.faults import Struck
from tests.fleet.fleet import Fleet
from tests.fleet.laws import CardShown, Delivered, Evidence, TurnRow, Written
from tests.fleet.load import Load, incident_of
from tests.fleet.taken_over import rows_of
from tests.invariants import broken
from tests.servers.slack.messages import Version

CARD, ANSWER = "watchkeeper_card", "watchkeeper_answer"
FORESEEN = "live again"  # judged by a law of ours, which knows who was frozen
SURPRISES = ("Traceback", "never retrieved", "was destroyed")


@dataclass(frozen=True, slots=True)
class Recovery:
    """How soon a struck turn went on."""

    turn: str
    seconds: float


async def gather(fleet: Fleet, load: Load, struck: Struck | None = None) -> Evidence:
    """Everything, as it stands now."""
    database = await fleet.records()
    stored, rows = await database.read(_stored)
    seen = Evidence(
        written=[Written(one.incident, one.words, one.thread) for one in load.said],
        delivered=list(_delivered(fleet)),
        stored=stored,
        told=[request.user_texts() for request in fleet.model.requests if request.verdict == "accepted"],
        begun=[event for event in fleet.tool_events() if _is_ours(fleet, event)],
        turns=rows,
        settles=await reports.settle_records(database),
        cards=list(_cards(fleet)),
        answers=list(_answers(fleet)),
        live=[card.ts for card in fleet.slack.live_cards()],
        slack=_complaints(fleet),
        refused=[str(request.fault) for request in fleet.model.refused],
        records=await broken(database, at_rest=True),
        tracebacks=surprises(fleet),
    )
    if struck is not None and struck.woke_at is not None:
        seen.zombie, seen.woke_at = str(struck.victim), struck.woke_at
        seen.rows_when_it_woke = struck.rows_when_it_woke
        seen.rows_at_rest = await rows_of(fleet, {row.turn for row in struck.rows_when_it_woke})
    return seen


async def recoveries(fleet: Fleet, struck: Struck, *, of_one: bool) -> list[Recovery]:
    """For each turn that ran when the fault struck (at the victim's, or at all): when it went on."""
    database = await fleet.records()
    _, rows = await database.read(_stored)
    ours = {row.id for row in rows if not of_one or struck.victim.is_worker(row.worker)}
    incidents = _incidents(fleet)
    found = []
    for record in await reports.settle_records(database):
        began, settled = _seconds(record["started_at"]), _seconds(record["settled_at"])
        if record["turn_id"] not in ours or not began <= struck.at <= settled:
            continue
        lost = record["reason"] == "stale"
        asked = incidents.get(str(record["thread"]), [])
        later = [at for at in asked if at > (settled if lost else struck.at)]
        went_on = min(later, default=settled) if lost else min([*later, settled])
        found.append(Recovery(str(record["turn_id"]), max(0.0, went_on - struck.at)))
    return found


def surprises(fleet: Fleet) -> list[str]:
    """What the processes logged that nobody had foreseen."""
    found = []
    for member in fleet.members:
        for line in member.log.read_text(errors="replace").splitlines():
            if any(word in line for word in SURPRISES):
                found.append(f"{member}: {line[:600]}")
    return found


def _incidents(fleet: Fleet) -> dict[str, list[float]]:
    """When the model was asked, by thread."""
    thread_of = {}
    for message in fleet.slack.workspace.all_messages():
        if "why is service" in message.text and not message.bot_id and not message.is_reply:
            thread_of[int(message.text.split("incident ")[1].split(":")[0])] = message.ts
    found: dict[str, list[float]] = {}
    for request in fleet.model.requests:
        if thread := thread_of.get(incident_of(request)):
            found.setdefault(thread, []).append(fleet.wall(request.arrived_ns / 1e9))
    return found


async def _stored(tx: AsyncConnection) -> tuple[list[str], list[TurnRow]]:
    keys = list((await tx.execute(select(inbox.c.key))).scalars())
    statement = select(turns, conversations.c.thread).join(
        conversations, conversations.c.id == turns.c.conversation_id
    )
    rows = (await tx.execute(statement)).all()
    return keys, [
        TurnRow(row.id, row.thread, row.number, row.worker, row.resumes_turn, row.card_id) for row in rows
    ]


def _delivered(fleet: Fleet) -> Iterator[Delivered]:
    for delivery in fleet.slack.deliveries:
        if delivery.type in ("message", "app_mention") and not delivery.event.get("bot_id"):
            yield Delivered(str(delivery.event["ts"]), delivery.acked)


def _is_ours(fleet: Fleet, event: dict[str, Any]) -> bool:
    return event["event"] == "started" and str(fleet.folder) in json.dumps(event)


def _payload(version: Version, event_type: str) -> dict[str, Any] | None:
    metadata = version.metadata or {}
    return metadata["event_payload"] if metadata.get("event_type") == event_type else None


def _cards(fleet: Fleet) -> Iterator[CardShown]:
    for message in fleet.slack.bot_messages():
        for version in message.versions:
            payload = _payload(version, CARD)
            if payload is not None:
                sender = fleet.member_at(version.call.host) if version.call else None
                at = fleet.wall(version.time)
                yield CardShown(message.ts, at, str(payload["turn_id"]), str(payload["state"]), str(sender))


def _answers(fleet: Fleet) -> Iterator[tuple[str, str, int]]:
    for message in fleet.slack.of_type(ANSWER):
        payload = _payload(message.versions[-1], ANSWER)
        assert payload is not None
        yield str(payload["turn_id"]), str(payload["final_event_id"]), int(payload["part"])


def _complaints(fleet: Fleet) -> list[str]:
    faults = [fault for fault in fleet.slack.card_faults() if FORESEEN not in fault]
    return [*faults, *(f"Slack was overrun: {violation}" for violation in fleet.slack.violations)]


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()

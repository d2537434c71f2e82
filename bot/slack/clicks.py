"""What a press of the Stop button means. Pure.

Slack does not send an interaction again, so a press during a gap is lost: writing "stop" is the second way.
"""

from __future__ import annotations

from bot.slack.identity import PLATFORM, Identity
from bot.slack.payload import Payload, identifier, record, records, timestamp
from core.arrivals import Arrival, Source, Thread

STOP_ACTION = "watchkeeper_stop"


def stop_click(body: Payload, us: Identity) -> Arrival | None:
    """The turn to stop is the one in the button's value, never "whatever runs in this thread".

    The button stands on our own message, so the workspace is ours whoever pressed it; in a shared channel the
    payload's `team` may be the presser's.
    """
    action = next((a for a in records(body, "actions") if a.get("action_id") == STOP_ACTION), {})
    container, message = record(body, "container"), record(body, "message")
    channel = identifier(container, "channel_id") or identifier(record(body, "channel"), "id")
    card = timestamp(container, "message_ts") or timestamp(message, "ts")
    user = identifier(record(body, "user"), "id")
    turn, pressed = identifier(action, "value"), timestamp(action, "action_ts")
    if not (channel and card and user and turn and pressed):
        return None
    root = timestamp(container, "thread_ts") or timestamp(message, "thread_ts") or card
    return Arrival(
        thread=Thread(PLATFORM, us.team, channel, root),
        key=f"{PLATFORM}:{us.team}:action:{channel}:{card}:{pressed}:{user}",
        source=Source.STOP_REQUEST,
        author_id=user,
        text="[pressed Stop]",
        message_ref=card,
        sent_at=float(pressed),
        inside_thread=True,
        author_team=identifier(record(body, "user"), "team_id") or None,
        stops_turn=turn,
    )

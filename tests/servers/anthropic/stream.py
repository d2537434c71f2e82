"""From a reply to the actions of its stream: the grammar of the wire, then the faults a script asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.servers.anthropic.blocks import Block, Piece, dumps
from tests.servers.anthropic.gate import Gate
from tests.servers.anthropic.reply import Break, Cut, Hold, Place, Reply, Stall
from tests.servers.anthropic.usage import Usage

DELTAS_PER_TEXT = 4


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    data: Mapping[str, Any]

    @property
    def wire(self) -> bytes:
        return f"event: {self.name}\ndata: {dumps(self.data)}\n\n".encode()

    def is_at(self, place: str) -> bool:
        name, _, index = place.partition(":")
        return name == self.name and (not index or str(self.data.get("index")) == index)


@dataclass(frozen=True, slots=True)
class HalfEvent:
    event: Event
    after_bytes: int

    @property
    def wire(self) -> bytes:
        return self.event.wire[: self.after_bytes]


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection closes here."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing more is sent, and nothing is closed."""


Action = Event | HalfEvent | Closed | Silent | Gate


def actions_of(reply: Reply, message: Mapping[str, Any], usage: Usage) -> list[Action]:
    actions = [
        a for a in events_of(reply, message, usage) if isinstance(a, Gate) or a.name not in reply.without
    ]
    return list(noisy(reply, edited(reply, actions)))


def events_of(reply: Reply, message: Mapping[str, Any], usage: Usage) -> Iterator[Event | Gate]:
    started = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage.at_start(),
    }
    yield Event("message_start", {"type": "message_start", "message": started})
    index = 0
    for part in reply.parts:
        if isinstance(part, Gate):
            yield part
            continue
        yield from events_of_block(part, index, reply.chunk)
        index += 1
    delta: dict[str, Any] = {"stop_reason": reply.why_stopped, "stop_sequence": reply.stop_sequence}
    if reply.stop_details is not None:
        delta["stop_details"] = reply.stop_details
    yield Event("message_delta", {"type": "message_delta", "delta": delta, "usage": usage.at_end()})
    yield Event("message_stop", {"type": "message_stop"})


def events_of_block(block: Block, index: int, chunk: int | None) -> Iterator[Event]:
    start = {"type": "content_block_start", "index": index, "content_block": block.start}
    yield Event("content_block_start", start)
    for delta in deltas_of(block, chunk):
        yield Event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
    yield Event("content_block_stop", {"type": "content_block_stop", "index": index})


def deltas_of(block: Block, chunk: int | None) -> Iterator[Mapping[str, Any]]:
    for piece in block.pieces:
        for text in split(piece, chunk):
            yield {"type": piece.delta, piece.key: text}
    yield from block.extra_deltas


def split(piece: Piece, chunk: int | None) -> list[str]:
    if piece.whole:
        return [piece.text] if piece.text else []
    size = chunk or max(-(-len(piece.text) // DELTAS_PER_TEXT), 1)
    return [piece.text[at : at + size] for at in range(0, len(piece.text), size)]


def edited(reply: Reply, actions: list[Event | Gate]) -> list[Action]:
    """Faults that end the stream drop what comes behind them; of two, the earlier wins."""
    holds = [(position(actions, edit.place), edit) for edit in reply.edits if isinstance(edit, Hold)]
    ends = [(position(actions, edit.place), edit) for edit in reply.edits if not isinstance(edit, Hold)]
    end, last = min(ends, key=lambda pair: pair[0]) if ends else (len(actions), None)
    result: list[Action] = []
    for number, action in enumerate([*actions, None]):
        result += [hold.gate for at, hold in holds if at == number and number <= end]
        if number >= end or action is None:
            break
        result.append(action)
    match last:
        case Cut(after_bytes=count):
            cut_in = actions[end] if end < len(actions) else None
            result += (
                [HalfEvent(cut_in, count), Closed()] if count and isinstance(cut_in, Event) else [Closed()]
            )
        case Stall():
            result.append(Silent())
        case Break(kind=kind, message=words):
            result.append(Event("error", {"type": "error", "error": {"type": kind, "message": words}}))
    return result


def position(actions: list[Event | Gate], place: Place) -> int:
    """Where in the list an action at this place goes in."""
    events = [(number, action) for number, action in enumerate(actions) if isinstance(action, Event)]
    if isinstance(place, int):
        return events[place][0] if place < len(events) else len(actions)
    for number, event in events:
        if event.is_at(place):
            return number
    raise AssertionError(f"no event {place!r} in this stream: {[event.name for _, event in events]}")


def noisy(reply: Reply, actions: list[Action]) -> Iterator[Action]:
    sent = 0
    for action in actions:
        yield action
        if isinstance(action, Event) and action.name not in ("message_stop", "error"):
            sent += 1
            if reply.pings and sent % reply.pings == 0:
                yield Event("ping", {"type": "ping"})
            if reply.unknown_events and sent % reply.unknown_events == 0:
                yield Event("weather_report", {"type": "weather_report", "sky": "clear"})

"""Calls and results: every call is answered once, at the start of the very next turn."""

from collections import Counter
from collections.abc import Iterator

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import Spot, Turn


def blocks_are_in_the_right_role(ask: Ask) -> Iterator[Fault]:
    for spot in ask.spots:
        if spot.type == "tool_use" and spot.role != "assistant":
            yield Fault("wrong_role", "`tool_use` blocks can only be in `assistant` messages")
        if spot.type == "tool_result" and spot.role != "user":
            yield Fault("wrong_role", "`tool_result` blocks can only be in `user` messages")


def call_ids_are_unique(ask: Ask) -> Iterator[Fault]:
    seen: set[str] = set()
    for spot in ask.spots:
        if spot.type == "tool_use" and spot.role == "assistant":
            if spot["id"] in seen:
                yield Fault("duplicate_id", f"{spot.path}: `tool_use` ids must be unique")
            seen.add(spot["id"])


def calls_of_a_turn_are_not_split(ask: Ask) -> Iterator[Fault]:
    """Where turns are not folded, two assistant messages with calls in a row cannot both be answered."""
    if not ask.context.folds_turns:
        for before, after in zip(ask.turns, ask.turns[1:], strict=False):
            if before.role == after.role == "assistant" and before.calls() and after.calls():
                number = after.spots[0].message + 1
                yield Fault("split_calls", too_many_results(number))


def results_of_a_batch_are_not_split(ask: Ask) -> Iterator[Fault]:
    if not ask.context.refuses_split:
        return
    for number, (before, after) in enumerate(zip(ask.messages, ask.messages[1:], strict=False)):
        late = [s for s in ask.spots if s.message == number + 1 and s.type == "tool_result"]
        early = [s for s in ask.spots if s.message == number and s.type == "tool_result"]
        if before["role"] == after["role"] == "user" and early and late:
            yield Fault("split_results", unanswered(number - 1, [spot["tool_use_id"] for spot in late]))


def roles_alternate(ask: Ask) -> Iterator[Fault]:
    """The first party folds neighbours of one role; Bedrock refuses them."""
    if not ask.context.folds_turns:
        for before, after in zip(ask.turns, ask.turns[1:], strict=False):
            if before.role == after.role:
                found = (
                    f'roles must alternate between "user" and "assistant", but found multiple "{after.role}"'
                )
                yield Fault("role_alternation", f"messages: {found} roles in a row")


def calls_are_answered(ask: Ask) -> Iterator[Fault]:
    """In the next turn, before anything else; the API names every fault of order as a missing result."""
    for number, turn in enumerate(ask.turns):
        if turn.role != "assistant":
            continue
        later = ask.turns[number + 1 :]
        faulty: dict[str, list[Spot]] = {}
        for call in turn.calls():
            if kind := why_unanswered(call["id"], later):
                faulty.setdefault(kind, []).append(call)
        for kind, calls in faulty.items():
            yield Fault(kind, missing(ask, kind, calls, later))


def why_unanswered(call_id: str, later: list[Turn]) -> str | None:
    if not later:
        return "dangling"
    leading = leading_results(later[0])
    if any(spot["tool_use_id"] == call_id for spot in leading):
        return None
    for spot in later[0].results():
        if spot["tool_use_id"] == call_id:
            before = later[0].spots[: later[0].spots.index(spot)]
            crowded = any(o.message == spot.message and o.type != "tool_result" for o in before)
            return "result_not_first" if crowded else "not_adjacent"
    if any(spot["tool_use_id"] == call_id for turn in later for spot in turn.results()):
        return "not_adjacent"
    return "dangling"


def leading_results(turn: Turn) -> list[Spot]:
    leading: list[Spot] = []
    for spot in turn.spots:
        if spot.type != "tool_result":
            break
        leading.append(spot)
    return leading


def missing(ask: Ask, kind: str, calls: list[Spot], later: list[Turn]) -> str:
    ids = [call["id"] for call in calls]
    if ask.context.deployment == "bedrock":
        return bedrock_unanswered(calls[0].message + 1, ids)
    late = [spot for spot in later[0].results() if spot["tool_use_id"] == ids[0]] if later else []
    if kind == "not_adjacent" and late:
        return unexpected(late[0])
    return unanswered(calls[0].message, ids)


def results_answer_the_turn_before(ask: Ask) -> Iterator[Fault]:
    """A late answer to an open call is that call's fault; any other stray result is an orphan."""
    issued_late = set(open_calls(ask))
    for number, turn in enumerate(ask.turns):
        before = ask.turns[number - 1].calls() if number else []
        known = {call["id"] for call in before}
        for spot in turn.results():
            if turn.role == "user" and spot["tool_use_id"] not in known | issued_late:
                bedrock = ask.context.deployment == "bedrock"
                yield Fault("orphan_result", too_many_results(spot.message) if bedrock else unexpected(spot))


def open_calls(ask: Ask) -> Iterator[str]:
    for number, turn in enumerate(ask.turns):
        for call in turn.calls():
            if why_unanswered(call["id"], ask.turns[number + 1 :]):
                yield call["id"]


def each_call_has_one_result(ask: Ask) -> Iterator[Fault]:
    for turn in ask.turns:
        counts = Counter(spot["tool_use_id"] for spot in turn.results())
        for call_id in (call_id for call_id, count in counts.items() if count > 1):
            spot = [s for s in turn.results() if s["tool_use_id"] == call_id][1]
            if ask.context.deployment == "bedrock":
                where = f"messages.{spot.message}.content"
                words = f"The toolResult blocks at {where} contain duplicate Ids: {call_id}"
            else:
                words = (
                    f"{spot.path}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {call_id}"
                )
            yield Fault("duplicate_result", words)


def client_calls_come_last(ask: Ask) -> Iterator[Fault]:
    """Server blocks go before client calls; with thinking on, text does too."""
    for turn in ask.turns:
        calls = turn.calls() if turn.role == "assistant" else []
        if not calls:
            continue
        after_first = turn.spots[turn.spots.index(calls[0]) + 1 :]
        server = [s for s in after_first if s.type == "server_tool_use" or s.type.endswith("_tool_result")]
        if server:
            yield Fault("tool_use_not_last", unanswered(calls[0].message, [calls[0]["id"]]))
        after_last = turn.spots[turn.spots.index(calls[-1]) + 1 :]
        thinks = any(spot.type in ("thinking", "redacted_thinking") for spot in turn.spots)
        if ask.thinking != "disabled" and thinks and any(spot.type == "text" for spot in after_last):
            yield Fault("tool_use_not_last", NO_PREFILL)


NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)


def unanswered(message: int, ids: list[str]) -> str:
    return (
        f"messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message."
    )


def unexpected(spot: Spot) -> str:
    return (
        f"{spot.path}: unexpected `tool_use_id` found in `tool_result` blocks: {spot['tool_use_id']}. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
    )


def bedrock_unanswered(message: int, ids: list[str]) -> str:
    return f"Expected toolResult blocks at messages.{message}.content for the following Ids: {', '.join(ids)}"


def too_many_results(message: int) -> str:
    return (
        f"The number of toolResult blocks at messages.{message}.content "
        "exceeds the number of toolUse blocks of previous turn."
    )

"""Thinking blocks: signed, whole, first in a running tool loop, and never changed."""

from collections.abc import Iterator, Sequence

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import Block, Turn
from tests.servers.anthropic.memory import is_thinking, mark_of


def signatures_are_valid(ask: Ask) -> Iterator[Fault]:
    latest = latest_assistant(ask)
    for spot in ask.spots:
        if spot.type != "thinking":
            continue
        known = ask.memory.thoughts.get(spot["signature"])
        altered = (
            known is not None and known != spot["thinking"] and (latest is None or spot not in latest.spots)
        )
        foreign = known is None and ask.context.strict_signatures
        if not spot["signature"] or altered or foreign:
            yield Fault("thinking_signature", f"{spot.path}: Invalid `signature` in `thinking` block")


def the_running_loop_starts_with_thinking(ask: Ask) -> Iterator[Fault]:
    """Only with `enabled`; adaptive thinking asks for none. What the model sent without thinking is fine."""
    if ask.thinking != "enabled":
        return
    for turn in running_loop(ask):
        origins = ask.memory.origins([spot.block for spot in turn.spots])
        if origins and not any(issued.thinks for issued in origins):
            continue
        if not is_thinking(turn.spots[0].block):
            first = turn.spots[0]
            yield Fault(
                "thinking_missing",
                f"{first.path}.type: Expected `thinking` or `redacted_thinking`, but found `{first.type}`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
                "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). "
                "We recommend you include thinking blocks from previous turns. "
                "To avoid this requirement, disable `thinking`.",
            )


def running_loop(ask: Ask) -> list[Turn]:
    """The assistant turns whose results stand between the last thing the user said and the end."""
    loop: list[Turn] = []
    for number in range(len(ask.turns) - 1, 0, -1):
        turn, before = ask.turns[number], ask.turns[number - 1]
        if turn.role != "user" or not turn.results() or before.role != "assistant":
            if turn.role == "user":
                break
            continue
        if loop and len(turn.results()) != len(turn.spots):
            break
        if before.spots:
            loop.append(before)
    return list(reversed(loop))


def latest_thinking_is_unchanged(ask: Ask) -> Iterator[Fault]:
    latest = latest_assistant(ask)
    if latest is None or not any(is_thinking(spot.block) for spot in latest.spots):
        return
    sent = [spot.block for spot in latest.spots]
    original = ask.context.original
    if original is None:
        original = [block for issued in ask.memory.origins(sent) for block in issued.content]
    if original and skeleton(original) != skeleton(sent):
        spot = next(spot for spot in latest.spots if is_thinking(spot.block))
        yield Fault(
            "thinking_modified",
            f"{spot.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
            "cannot be modified. These blocks must remain as they were in the original response.",
        )


def skeleton(content: Sequence[Block]) -> list[str | Block]:
    """Thoughts as they are, and where they stand among the calls."""
    return [b if is_thinking(b) else mark_of(b) for b in content if is_thinking(b) or mark_of(b)]


def latest_assistant(ask: Ask) -> Turn | None:
    return next((turn for turn in reversed(ask.turns) if turn.role == "assistant"), None)

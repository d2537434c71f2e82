"""The rescue in front of every request: a history that no provider refuses, and that claims nothing untrue.

It closes what a crash or an older fault left open, on a copy: the transcript itself is never rewritten.

Rule 1: every call has exactly one result, in the user message right behind it; a missing one is "unknown".
Rule 2: a second result is dropped, the first stays; a result without a call becomes plain, marked text.
Rule 3: results lead their message; no message is empty; ids are legal and unique.
Rule 4: a valid history comes back as the same object, twice changes nothing, nobody's words are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.call_ids import legalised
from core.history import Block, Call, Message, Result, Role, Text
from core.prompt import notice
from core.tools import outcome_unknown


def repaired(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages as they can be sent; the same object when they could be already."""
    work = _Work(waiting=list(reversed(messages)))
    while work.waiting:
        message = work.waiting.pop()
        if message.role is Role.ASSISTANT and message.calls:
            _close(message, work)
        else:
            _keep(_without_pairs(message, work), work)
    result = tuple(work.done)
    return messages if result == messages else result


@dataclass(slots=True)
class _Work:
    """What is still to be looked at (last first), what is done, and which ids were met."""

    waiting: list[Message]
    done: list[Message] = field(default_factory=list)
    issued: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)


def _close(message: Message, work: _Work) -> None:
    """Keep a message with calls, and lead the user message behind it with one result for each of them."""
    given = [call.id for call in message.calls]
    legal, _ = legalised(_without_results(message, work), work.issued)
    open_calls = list(zip(given, (call.id for call in legal.calls), strict=True))
    work.issued |= {call.id for call in legal.calls}
    behind = _run_of_user_messages(work)
    results, rest = _matched(open_calls, behind, work)
    work.done.append(legal)
    first = Message(Role.USER, (*results, *(rest[0] if rest else ())))
    work.done.append(first)
    for blocks in rest[1:]:
        _keep(Message(Role.USER, tuple(blocks)), work)


def _run_of_user_messages(work: _Work) -> list[Message]:
    run: list[Message] = []
    while work.waiting and work.waiting[-1].role is Role.USER:
        run.append(work.waiting.pop())
    return run


def _matched(
    open_calls: list[tuple[str, str]], behind: Sequence[Message], work: _Work
) -> tuple[list[Result], list[list[Block]]]:
    """One result per call, in the order found and then the missing ones; and what else the messages hold.

    `open_calls` are pairs (id as given, legal id): calls that came with the same id are matched by position.
    """
    results: list[Result] = []
    rest: list[list[Block]] = []
    for message in behind:
        others: list[Block] = []
        for block in message.blocks:
            pair = _pair_of(block, open_calls)
            if isinstance(block, Result) and pair is not None:
                open_calls.remove(pair)
                work.answered |= set(pair)
                results.append(block if pair[0] == pair[1] else replace(block, call_id=pair[1]))
            else:
                others.extend(_not_a_pair(block, Role.USER, work))
        rest.append(others)
    unknown = outcome_unknown().text
    return [*results, *(Result(call_id, unknown, is_error=True) for _, call_id in open_calls)], rest


def _pair_of(block: Block, open_calls: list[tuple[str, str]]) -> tuple[str, str] | None:
    if not isinstance(block, Result):
        return None
    return next((pair for pair in open_calls if pair[0] == block.call_id), None)


def _without_pairs(message: Message, work: _Work) -> Message:
    """A message that answers no call: its results belong to nobody."""
    blocks = [kept for block in message.blocks for kept in _not_a_pair(block, message.role, work)]
    return message if tuple(blocks) == message.blocks else Message(message.role, tuple(blocks))


def _without_results(message: Message, work: _Work) -> Message:
    """A message of the model, in which no result can stand."""
    if not any(isinstance(block, Result) for block in message.blocks):
        return message
    return _without_pairs(message, work)


def _not_a_pair(block: Block, role: Role, work: _Work) -> tuple[Block, ...]:
    """What stays of a block that is no result of an open call."""
    if isinstance(block, Result):
        if block.call_id in work.answered:
            return ()
        work.answered.add(block.call_id)
        return (Text(notice(f"A result without its call ({block.call_id}):\n{block.text}")),)
    if isinstance(block, Call) and role is Role.USER:
        return (Text(notice(f"A call that the model did not make ({block.name}) was left out.")),)
    return (block,)


def _keep(message: Message, work: _Work) -> None:
    if any(not isinstance(block, Text) or block.text.strip() for block in message.blocks):
        work.done.append(message)

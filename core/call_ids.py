"""Call ids that every provider takes and that are unique in the conversation.

Models and gateways send ids that are empty, doubled, too long or full of signs for which the next request is
refused (anomalyco/opencode#1279, huggingface/tau#385, anthropics/claude-code#21317). They are changed before
the message is committed, and only where needed.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import replace

from core.history import Block, Call, Message

LONGEST = 64
_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_ILLEGAL_SIGN = re.compile(r"[^a-zA-Z0-9_-]")


def is_legal(call_id: str) -> bool:
    """Whether a provider takes this id."""
    return _LEGAL.fullmatch(call_id) is not None


def legalised(message: Message, taken: Set[str]) -> tuple[Message, dict[str, str]]:
    """The message with legal ids, unique and not `taken`, and what became of the changed ones.

    The mapping is {id as given: new id}, for the first call of each given id and only where it changed. The
    message comes back as the same object when nothing changed.
    """
    kept = _kept(message, taken)
    used = set(taken) | set(kept.values())
    blocks: list[Block] = []
    now: dict[str, str] = {}
    for index, block in enumerate(message.blocks):
        if not isinstance(block, Call):
            blocks.append(block)
            continue
        new = kept.get(index) or _free(block.id, used)
        used.add(new)
        now.setdefault(block.id, new)
        blocks.append(block if new == block.id else replace(block, id=new))
    changed = {given: new for given, new in now.items() if given != new}
    if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message, changed
    return replace(message, blocks=tuple(blocks)), changed


def _kept(message: Message, taken: Set[str]) -> dict[int, str]:
    """Block index → id of the calls that need no change: legal, free, and the first with that id."""
    kept: dict[str, int] = {}
    for index, block in enumerate(message.blocks):
        if isinstance(block, Call) and is_legal(block.id) and block.id not in taken:
            kept.setdefault(block.id, index)
    return {index: call_id for call_id, index in kept.items()}


def _free(given: str, used: Set[str]) -> str:
    """The nearest legal id that is not used."""
    base = _ILLEGAL_SIGN.sub("_", given)[:LONGEST] or "call"
    candidate, number = base, 1
    while candidate in used:
        number += 1
        suffix = f"-{number}"
        candidate = base[: LONGEST - len(suffix)] + suffix
    return candidate

"""How things are shown to the model: who speaks, and what is data.

Rule 1: only code writes the tags below; whatever looks like one of them in anybody's words is defused.
Rule 2: apart from that, words appear verbatim.
"""

from __future__ import annotations

import re

MESSAGE = "message"
CONTEXT = "context"
NOTICE = "notice"
TOOL_OUTPUT = "tool_output"
TAGS = (MESSAGE, CONTEXT, NOTICE, TOOL_OUTPUT)

# A less-than sign (or its wide twins), then anything that a reader skips, then one of our names. Words that
# were defused before stay as they are.
_GAP = r"[\s/\\\x00-\x1f\u00ad\u200b-\u200f\u2060\ufeff]*"
_LIKE_A_TAG = re.compile(rf"([<\uff1c\ufe64])(?!\u200b)(?={_GAP}(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f]+")
_ESCAPES = str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"})


def person_message(name: str, role: str, at_text: str, words: str) -> str:
    """What somebody with the right to instruct wrote; `at_text` is the time as shown, like "14:05:11Z"."""
    return _wrapped(MESSAGE, {"from": name, "role": role, "at": at_text}, words)


def context_message(name: str, role: str, at_text: str, words: str) -> str:
    """What somebody wrote that is context and no instruction."""
    return _wrapped(CONTEXT, {"from": name, "role": role, "at": at_text}, words)


def notice(text: str) -> str:
    """What the program tells the model."""
    return _wrapped(NOTICE, {}, text)


def tool_output(call_label: str, tool: str, text: str) -> str:
    """What a call came back with; `call_label` is what an answer cites, like "c3"."""
    return _wrapped(TOOL_OUTPUT, {"call": call_label, "tool": tool}, text)


def defused(words: str) -> str:
    """The words with everything that looks like a tag of ours made harmless; nothing else changes."""
    return _LIKE_A_TAG.sub("\\1\u200b", words)


def _wrapped(tag: str, attributes: dict[str, str], words: str) -> str:
    shown = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    return f"<{tag}{shown}>\n{defused(words)}\n</{tag}>"


def _attribute(value: str) -> str:
    return _BREAKS.sub(" ", value).strip().translate(_ESCAPES)

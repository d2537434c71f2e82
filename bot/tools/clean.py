"""Tool text made safe to show: what nobody sees or would act on a terminal is dropped, the length is bounded.

Tool output is untrusted. Invisible characters carry instructions that people do not see (Unicode tags,
https://www.unicode.org/charts/PDF/UE0000.pdf), bidirectional controls reorder what they do see
(https://trojansource.codes), and escape sequences act on the terminals in which logs are read (ECMA-48).
"""

from __future__ import annotations

import re

# ECMA-48: OSC and its kin up to BEL or ST, CSI with parameters, and two-character escapes. Bounded, so that
# an unfinished sequence eats little and costs no more than its length. The one-character forms (C1) are only
# dropped.
_ESCAPES = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b\[[0-?]{0,64}[ -/]{0,16}[@-~]?"
    r"|\x1b[ -/]{0,16}[0-~]?"
)

_LINE_ENDS = re.compile("\r\n?|\u2028|\u2029")

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for \t and \n, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"  # soft hyphen, joiners and fillers without a shape
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width, bidirectional controls, byte order mark
    "\ufff9-\ufffb"  # interlinear annotation
    "\ud800-\udfff"  # surrogates: a lone one cannot be written as UTF-8
    "\U000e0000-\U000e0fff"  # tags and variation selectors beyond the plain ones
    "]"
)


def clean(text: str) -> str:
    """The text without escape sequences and characters that nobody sees; lines end in a plain newline."""
    text = _LINE_ENDS.sub("\n", text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _INVISIBLE.sub("", text)


def one_line(text: str, most: int = 300) -> str:
    """The text on one line of at most `most` characters."""
    flat = " ".join(clean(text[: most * 8]).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def bound(text: str, max_bytes: int) -> str:
    """At most `max_bytes` bytes of the text: its head, a line that says what was left out, and its tail."""
    raw = text.encode("utf-8", errors="replace")
    if len(raw) <= max_bytes:
        return text
    room = max_bytes - len(_left_out(len(raw), len(raw), max_bytes).encode())
    if room <= 0:
        return _decode(raw[:max_bytes])
    tail = room // 3
    head_text = _decode(raw[: room - tail])
    tail_text = _decode(raw[len(raw) - tail :]) if tail else ""
    kept = len(head_text.encode()) + len(tail_text.encode())
    return head_text + _left_out(len(raw) - kept, len(raw), max_bytes) + tail_text


def shorten(text: str, most: int) -> str:
    """About `most` characters of a text that is far too long, head and tail, cut at line ends.

    A rough cut before costlier work; `bound` makes the exact one and counts what it gets.
    """
    if len(text) <= most:
        return text
    half = most // 2
    head, tail = text[:half], text[-half:]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    return f"{head}\n[about {len(text) - len(head) - len(tail)} characters left out here]\n{tail}"


def _left_out(missing: int, whole: int, max_bytes: int) -> str:
    return (
        f"\n[{missing} of {whole} bytes left out here: results are limited to {max_bytes} bytes. "
        "Ask for less: a narrower filter, a shorter time range, fewer items.]\n"
    )


def _decode(raw: bytes) -> str:
    """The bytes as text, without the pieces of a character at either end."""
    return raw.decode("utf-8", errors="ignore")

"""What a person's words ask for, on any platform: to interrupt, to wait, or to stop. Pure."""

from __future__ import annotations

import re

from core.arrivals import Marker

LONGEST_TEXT = 40_000
CUT_MARK = " […cut here: the message was longer]"
NOT_SHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
STOP_TO_US = re.compile(r"!?stop[\s.!?…,;:]*", re.IGNORECASE)
STOP_SIGN = re.compile(r"\s*!stop[\s.!?…,;:]*", re.IGNORECASE)


def cleaned(text: str) -> str:
    """Bounded, with line ends as "\\n", and without control characters and halves of surrogate pairs."""
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + CUT_MARK
    return NOT_SHOWN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def marker_of(text: str) -> Marker:
    """Whether the words begin with one of the two marks."""
    start = text.lstrip()
    if start.startswith("!"):
        return Marker.NOW
    return Marker.LATER if start[:6].lower() == "later:" else Marker.NONE


def asks_to_stop(words: str, *, to_us: bool) -> bool:
    """Whether the words, without our name in front, are a stop and nothing else; a bare "stop" only to us."""
    return (STOP_TO_US if to_us else STOP_SIGN).fullmatch(words) is not None

"""Takes secrets out of text before it is stored, shown or sent: known values, and what is shaped like one.

Rule 1: `redact(redact(text)) == redact(text)`; a mark is never taken for a secret.
Rule 2: text that comes in pieces is redacted as the whole would be, wherever it was cut: it is judged by
lines, and a line is held back until it is complete.
Rule 3: time grows with the text, not with its square: see `core.secret_shapes`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable

from core.secret_shapes import KNOWN, MARKS, PRIVATE_KEY, SHAPES, mark, replaced

SHORTEST_KNOWN = 8  # a shorter value is a word that stands in ordinary text

# RFC 7468: a private key in its textual encoding. The body's lines may be indented or quoted, and inside JSON
# the line ends may be escapes.
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[ \t>|\r]*(?:[A-Za-z0-9+/=]{0,200}|[A-Za-z-]{1,30}: [^\n]{0,200})[ \t\r]*$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEY_REST = re.compile(r"(?:[A-Za-z0-9+/=]|\\+[nr])*")


class Redactor:
    """Redacts with the secrets of this installation and with the table of shapes."""

    def __init__(self, known_secrets: Iterable[str]) -> None:
        self._known = tuple(sorted(_forms(known_secrets), key=lambda value: (-len(value), value)))

    def redact(self, text: str) -> str:
        """The text with a mark like `[redacted:aws_key]` in place of every secret."""
        stream = StreamRedactor(self)
        return stream.feed(text) + stream.flush()

    def lines(self, text: str) -> str:
        """Redact whole lines without private keys; for `StreamRedactor`."""
        for value in self._known:
            if value in text:
                text = text.replace(value, mark(KNOWN))
        lowered = text.lower()
        for shape in SHAPES:
            if any(anchor in lowered for anchor in shape.anchors):
                text = replaced(shape, text)
        return text


class StreamRedactor:
    """Redacts text that comes in pieces. What `feed` gives may be shown; `flush` gives the rest."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._open: list[str] = []  # the line that is not complete yet
        self._in_key = False

    def feed(self, piece: str) -> str:
        """All lines that this piece completes."""
        complete, newline, rest = piece.rpartition("\n")
        if not newline:
            self._open.append(piece)
            return ""
        whole = "".join([*self._open, complete, newline])
        self._open = [rest]
        return self._redacted(whole)

    def flush(self) -> str:
        """The last line, which nothing completes any more."""
        rest, self._open = "".join(self._open), []
        done = self._redacted(rest)
        self._in_key = False
        return done

    def _redacted(self, whole: str) -> str:
        if not self._in_key and "-----BEGIN" not in whole:
            return self._redactor.lines(whole)
        return self._redactor.lines("".join(self._without_key(line) for line in _LINE.findall(whole)))

    def _without_key(self, line: str) -> str:
        """The line without any part of a private key."""
        kept, at = [], 0
        if self._in_key:
            end = _KEY_END.search(line)
            if end is None and _KEY_BODY.match(line):
                return ""
            self._in_key = False
            if end is None:
                kept.append("\n")  # the key broke off; what follows is ordinary text again
            else:
                at = end.end()
        ends = True  # whether an end may still come in this line: looked for only until there is none
        while (begin := _KEY_BEGIN.search(line, at)) is not None:
            kept += line[at : begin.start()], mark(PRIVATE_KEY)
            end = _KEY_END.search(line, begin.end()) if ends else None
            ends = end is not None
            body = end or _KEY_REST.match(line, begin.end())
            at = body.end() if body else begin.end()
        if kept and kept[-1] == mark(PRIVATE_KEY) and not ends and not line[at:].strip("\r\n\t "):
            self._in_key = True
            return "".join(kept)
        return "".join(kept) + line[at:]


def _forms(secrets: Iterable[str]) -> set[str]:
    """Every way in which a known secret may stand in text: itself, its lines, and their usual encodings."""
    found: set[str] = set()
    for secret in secrets:
        for part in {secret.strip(), *(line.strip() for line in secret.splitlines())}:
            if len(part) < SHORTEST_KNOWN or "\n" in part or part.startswith("-----"):
                continue
            found |= {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
            found |= _percent(part) | _base64(part.encode("utf-8", errors="surrogatepass"))
    return {form for form in found if not any(form in sign for sign in MARKS)}


def _percent(text: str) -> set[str]:
    """RFC 3986 percent-encoding as `quote` and `quote_plus` do it, in both cases of the digits."""
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
    raw = text.encode("utf-8", errors="surrogatepass")
    forms = set()
    for keep in (plain, plain + "/"):
        for digits in ("%{:02X}", "%{:02x}"):
            quoted = "".join(chr(byte) if chr(byte) in keep else digits.format(byte) for byte in raw)
            forms |= {quoted, quoted.replace("%20", "+")}
    return forms


def _base64(raw: bytes) -> set[str]:
    """The part of the base64 form that depends on the secret alone, at each of its three possible offsets."""
    forms = set()
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * offset + raw).decode().rstrip("=")
            first = (8 * offset + 5) // 6  # the first character without a bit of what stands before
            last = 8 * (offset + len(raw)) // 6  # and the last one without a bit of what follows
            if last - first >= SHORTEST_KNOWN:
                forms.add(text[first:last])
    return forms

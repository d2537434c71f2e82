"""A query as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.incident.promql.errors import ParseError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<duration>(?:[0-9]+(?:ms|[smhdwy]))+(?![a-zA-Z0-9_]))
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<colon>:(?=\s*(?:[0-9]|\])))
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<sign>=~|!~|==|!=|<=|>=|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-7]{3}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True)
class Token:
    """A piece of the query; `kind` is `end` after the last."""

    kind: str
    text: str
    position: int


def tokens(query: str) -> list[Token]:
    """All pieces, and the end."""
    found, place = [], 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None:
            raise ParseError(query, place, f"unexpected character: {query[place]!r}")
        if match.lastgroup != "space":
            kind = "sign" if match.lastgroup == "colon" else str(match.lastgroup)
            found.append(Token(kind, match[0], place))
        place = match.end()
    return [*found, Token("end", "", len(query))]


def seconds(duration: str) -> float:
    """Of a duration like 1h30m."""
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([0-9]+)(ms|[smhdwy])", duration))


def unquoted(string: str) -> str:
    """What a string stands for."""
    if string[0] == "`":
        return string[1:-1]

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "ux":
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if len(code) == 3 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(plain, string[1:-1])

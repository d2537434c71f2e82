"""The part of LogQL that people and models use: a selector, filters, `| json`, counts of lines over time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.incident.logs import Line
from bot.incident.patterns import BadPattern, Matcher, compiled
from bot.incident.promql.errors import ParseError
from bot.incident.promql.lexer import UNITS, Token, seconds, tokens, unquoted

Fields = Mapping[str, object]
Test = Callable[[Line, Fields], bool]

_COUNTED = frozenset({"count_over_time", "rate"})
_OTHERS = "this server knows |= != |~ !~, | json and label filters"


class LogqlError(Exception):
    """The query is none that can be answered; says so in Loki's words."""


@dataclass(frozen=True)
class LogQuery:
    """Which lines; and for a count which labels, over how long, and whether per second."""

    matchers: tuple[Matcher, ...]
    tests: tuple[Test, ...] = ()
    parsed: bool = False
    count_s: float = 0.0
    per_second: bool = False
    by: tuple[str, ...] | None = None

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a stream is meant."""
        return all(each.holds(labels) for each in self.matchers)

    def holds(self, line: Line) -> bool:
        """Whether a line passes the filters."""
        fields: Fields = line.record if self.parsed else {}
        return all(test(line, fields) for test in self.tests)


def parse(query: str) -> LogQuery:
    """The meaning of a query."""
    try:
        return _Parser(query).whole()
    except ParseError as error:
        found = re.match(r"(\d+):(\d+): parse error: (.*)", str(error), re.DOTALL)
        line, column, message = found.groups() if found else ("1", "1", str(error))
        raise LogqlError(f"parse error at line {line}, col {column}: {message}") from None


class _Parser:
    def __init__(self, query: str) -> None:
        self.query = query
        self.tokens = _tokens(query)
        self.place = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.now
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def takes(self, *texts: str) -> Token | None:
        return self.take() if self.now.kind in ("sign", "name") and self.now.text in texts else None

    def expect(self, *texts: str) -> Token:
        found = self.takes(*texts)
        if found is None:
            raise self.fault(self.now, f"expected {' or '.join(texts)}")
        return found

    def fault(self, token: Token, message: str) -> ParseError:
        what = "end of input" if token.kind == "end" else repr(token.text)
        return ParseError(self.query, token.position, f"syntax error: unexpected {what}, {message}")

    def whole(self) -> LogQuery:
        found = self.lines() if self.now.text == "{" else self.counted()
        if self.now.kind != "end":
            raise self.fault(self.now, "expected the end")
        return found

    def counted(self) -> LogQuery:
        """`sum by (level) (count_over_time({…}[5m]))`, with or without the sum."""
        by: tuple[str, ...] | None = None
        summed = self.takes("sum")
        if summed:
            by = self.labels() if self.takes("by") else ()
            self.expect("(")
        function = self.take()
        if function.text not in _COUNTED:
            raise self.fault(function, "expected { or one of sum, count_over_time, rate")
        self.expect("(")
        found = self.lines()
        self.expect("[")
        length = self.take()
        if length.kind != "duration":
            raise self.fault(length, "expected a duration like 5m")
        self.expect("]")
        self.expect(")")
        if summed:
            self.expect(")")
            by = self.labels() if self.takes("by") else by
        span, rate = seconds(length.text), function.text == "rate"
        return LogQuery(found.matchers, found.tests, found.parsed, span, rate, by)

    def labels(self) -> tuple[str, ...]:
        self.expect("(")
        found = []
        while not self.takes(")"):
            found.append(self.take().text)
            self.takes(",")
            if self.now.kind == "end":
                raise self.fault(self.now, "expected )")
        return tuple(found)

    def lines(self) -> LogQuery:
        matchers, tests, parsed = self.selector(), [], False
        while self.now.text in ("|=", "|~", "!=", "!~", "|"):
            sign = self.take()
            if sign.text != "|":
                tests.append(self.line_filter(sign.text))
            elif self.takes("json"):
                parsed = True
            else:
                tests.append(self.label_filter())
                while self.takes("and", ","):
                    tests.append(self.label_filter())
        return LogQuery(matchers, tuple(tests), parsed)

    def selector(self) -> tuple[Matcher, ...]:
        start, found = self.expect("{"), []
        while not self.takes("}"):
            label = self.take()
            if label.kind != "name":
                raise self.fault(label, "expected a label or }")
            how = self.expect("=", "!=", "=~", "!~")
            found.append(Matcher(label.text, how.text, self.pattern("~" in how.text)))
            if not self.takes(",") and self.now.text != "}":
                raise self.fault(self.now, "expected , or }")
        if all(each.test("") for each in found):
            raise ParseError(
                self.query,
                start.position,
                "queries require at least one regexp or equality matcher that does not have an "
                "empty-compatible value",
            )
        return tuple(found)

    def pattern(self, regex: bool) -> str:
        token = self.take()
        if token.kind != "string":
            raise self.fault(token, "expected a string")
        text = unquoted(token.text)
        if regex:
            try:
                compiled(text)
            except BadPattern as error:
                raise ParseError(self.query, token.position, str(error)) from None
        return text

    def line_filter(self, sign: str) -> Test:
        text = self.pattern("~" in sign)
        if "~" in sign:
            search = compiled(text).search
            wanted = sign == "|~"
            return lambda line, _: (search(line.text) is not None) is wanted
        wanted = sign == "|="
        return lambda line, _: (text in line.text) is wanted

    def label_filter(self) -> Test:
        label = self.take()
        if label.kind != "name" or self.now.kind != "sign":
            raise self.fault(label, _OTHERS)
        how = self.expect("=", "!=", "=~", "!~", "==", ">", ">=", "<", "<=").text
        if self.now.kind == "string":
            matcher = Matcher(label.text, "=" if how == "==" else how, self.pattern("~" in how))
            if how not in ("=", "!=", "=~", "!~", "=="):
                raise self.fault(label, "a text can be compared with = != =~ !~")
            return lambda line, fields: matcher.test(_text(_found(label.text, line, fields)))
        return _compares(label.text, how, self.number())

    def number(self) -> float:
        token = self.take()
        if token.kind == "duration":
            return seconds(token.text)
        if token.kind != "number":
            raise self.fault(token, "expected a string or a number")
        return float(token.text)


def _found(name: str, line: Line, fields: Fields) -> object:
    if name in ("service", "level"):
        return line.service if name == "service" else line.level
    return fields.get(name, "")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _compares(name: str, how: str, number: float) -> Test:
    ways: Mapping[str, Callable[[float], bool]] = {
        "=": lambda found: found == number,
        "==": lambda found: found == number,
        "!=": lambda found: found != number,
        ">": lambda found: found > number,
        ">=": lambda found: found >= number,
        "<": lambda found: found < number,
        "<=": lambda found: found <= number,
    }
    if how not in ways:
        raise LogqlError(f"parse error at line 1, col 1: syntax error: {how} needs a string")
    compare = ways[how]

    def test(line: Line, fields: Fields) -> bool:
        try:
            return compare(float(str(_found(name, line, fields))))
        except ValueError:
            return False

    return test


def _tokens(query: str) -> list[Token]:
    """As in PromQL, with |, |= and |~ added."""
    found: list[Token] = []
    place = 0
    for match in re.finditer(r"\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|\|[=~]?", query):
        if match[0][0] != "|":
            continue
        found += _between(query, place, match.start())
        found.append(Token("sign", match[0], match.start()))
        place = match.end()
    return [*found, *_between(query, place, len(query)), Token("end", "", len(query))]


def _between(query: str, start: int, end: int) -> list[Token]:
    blank = " " * start + query[start:end]  # so that positions are those of the whole query
    return tokens(blank)[:-1]


__all__ = ["UNITS", "LogQuery", "LogqlError", "parse"]

"""Pratt's parser: operators by how strongly they bind; types are checked on the way, as Prometheus does."""

from __future__ import annotations

from bot.incident.patterns import BadPattern, Matcher, compiled
from bot.incident.promql import nodes
from bot.incident.promql.errors import ParseError
from bot.incident.promql.lexer import Token, seconds, tokens, unquoted
from bot.incident.promql.nodes import Node
from bot.incident.promql.operators import AGGREGATES, BINDS, COMPARISONS, PARAMETERS, SETS, UNARY

DEEPEST = 50
LONGEST = 10_000


def parse(query: str) -> Node:
    """The tree of a query."""
    if len(query) > LONGEST:
        raise ParseError(query, 0, f"longer than {LONGEST} characters")
    parser = _Parser(query)
    node = parser.expression(0)
    if parser.now.kind != "end":
        raise parser.unexpected(parser.now)
    return node


class _Parser:
    def __init__(self, query: str) -> None:
        self.query = query
        self.tokens = tokens(query)
        self.place = 0
        self.depth = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.now
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def takes(self, *texts: str) -> Token | None:
        """The next token if it is one of these signs or words."""
        wanted = self.now.kind in ("sign", "name") and self.now.text.lower() in texts
        return self.take() if wanted else None

    def expect(self, text: str, context: str) -> Token:
        if self.now.kind == "sign" and self.now.text == text:
            return self.take()
        raise self.unexpected(self.now, f"{context}, expected {text!r}")

    def fault(self, token: Token, message: str) -> ParseError:
        return ParseError(self.query, token.position, message)

    def unexpected(self, token: Token, context: str = "") -> ParseError:
        what = "end of input" if token.kind == "end" else f"{token.kind} {token.text!r}"
        if token.kind == "end" and not self.query.strip():
            return self.fault(token, "no expression found in input")
        return self.fault(token, f"unexpected {what}{' in ' + context if context else ''}")

    # expressions

    def expression(self, least: int) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault(self.now, "expression is nested too deeply")
        left = self.prefix()
        while self.now.kind in ("sign", "name") and (binds := BINDS.get(self.now.text.lower(), -1)) > least:
            left = self.binary(left, self.take(), binds)
        self.depth -= 1
        return left

    def prefix(self) -> Node:
        token = self.now
        if sign := self.takes("-", "+"):
            inner = self.expression(UNARY)
            if nodes.type_of(inner) not in (nodes.SCALAR, nodes.VECTOR):
                raise self.fault(
                    sign,
                    "unary expression only allowed on expressions of type scalar or instant vector, "
                    f"got {nodes.type_of(inner)!r}",
                )
            return nodes.Negated(inner) if sign.text == "-" else inner
        return self.postfix(self.primary(), token)

    def primary(self) -> Node:
        token = self.take()
        if token.kind == "number":
            return nodes.Number(_number(token.text))
        if token.kind == "string":
            return nodes.String(unquoted(token.text))
        if token.kind == "name":
            return self.named(token)
        if token.text == "(":
            inner = self.expression(0)
            self.expect(")", "parenthesised expression")
            return inner
        if token.text == "{":
            return self.selector(None, token)
        raise self.unexpected(token)

    def named(self, token: Token) -> Node:
        word, bracket = token.text.lower(), self.now.kind == "sign" and self.now.text in ("(", "{")
        if word in AGGREGATES and (self.now.text == "(" or self.now.text.lower() in ("by", "without")):
            return self.aggregate(token)
        if bracket and self.now.text == "(":
            return self.call(token)
        if word in ("inf", "nan"):
            return nodes.Number(float(word))
        if word in BINDS:
            raise self.unexpected(token)
        return self.selector(token.text, token)

    def postfix(self, node: Node, start: Token) -> Node:
        while True:
            if self.now.kind == "sign" and self.now.text == "[":
                node = self.ranged(node, start)
            elif self.takes("offset"):
                sign = -1.0 if self.takes("-") else 1.0
                when = nodes.When(sign * self.duration("offset"), self.movable(node, start).when.at)
                node = nodes.moved(self.movable(node, start), when)
            elif self.takes("@"):
                movable = self.movable(node, start)
                node = nodes.moved(movable, nodes.When(movable.when.offset, self.moment()))
            else:
                return node

    def movable(self, node: Node, start: Token) -> nodes.Selector | nodes.Subquery:
        if isinstance(node, nodes.Selector | nodes.Subquery):
            return node
        raise self.fault(
            start,
            "offset modifier must be preceded by an instant vector selector or range vector selector "
            "or a subquery",
        )

    def moment(self) -> float | str:
        if word := self.takes("start", "end"):
            self.expect("(", "@ modifier")
            self.expect(")", "@ modifier")
            return word.text.lower()
        sign = -1.0 if self.takes("-") else 1.0
        if self.now.kind != "number":
            raise self.unexpected(self.now, "@ modifier")
        return sign * _number(self.take().text)

    def duration(self, context: str) -> float:
        if self.now.kind == "duration":
            return seconds(self.take().text)
        raise self.fault(
            self.now, f"bad duration in {context}: {self.now.text!r}, expected one like 5m or 1h30m"
        )

    def ranged(self, node: Node, start: Token) -> Node:
        self.take()
        length = self.duration("range")
        if length <= 0:
            raise self.fault(start, "duration must be greater than 0")
        if self.takes(":"):
            step = self.duration("subquery") if self.now.kind == "duration" else None
            self.expect("]", "subquery selector")
            if nodes.type_of(node) not in (nodes.SCALAR, nodes.VECTOR):
                raise self.fault(
                    start, f"subquery is only allowed on instant vector, got {nodes.type_of(node)} instead"
                )
            return nodes.Subquery(node, length, step)
        self.expect("]", "range selector")
        if not isinstance(node, nodes.Selector):
            raise self.fault(start, "ranges only allowed for vector selectors; for an expression write [5m:]")
        if node.range_s is not None:
            raise self.fault(start, "ranges only allowed for vector selectors")
        return nodes.Selector(node.matchers, length, node.when)

    # selectors

    def selector(self, name: str | None, start: Token) -> nodes.Selector:
        matchers = [] if name is None else [Matcher("__name__", "=", name)]
        if name is None or self.takes("{"):
            while not self.takes("}"):
                matchers.append(self.matcher())
                if not self.takes(",") and self.now.text != "}":
                    raise self.unexpected(self.now, "label matching, expected ',' or '}'")
        if all(each.test("") for each in matchers):
            raise self.fault(start, "vector selector must contain at least one non-empty matcher")
        return nodes.Selector(tuple(matchers))

    def matcher(self) -> Matcher:
        label = self.take()
        if label.kind != "name":
            raise self.unexpected(label, "label matching, expected a label or '}'")
        sign = self.takes("=", "!=", "=~", "!~")
        if sign is None:
            raise self.unexpected(self.now, "label matching, expected one of = != =~ !~")
        value = self.take()
        if value.kind != "string":
            raise self.unexpected(value, "label matching, expected string")
        text = unquoted(value.text)
        if "~" in sign.text:
            try:
                compiled(text)
            except BadPattern as error:
                raise self.fault(value, str(error)) from None
        return Matcher(label.text, sign.text, text)

    # functions, aggregations, operators

    def call(self, token: Token) -> Node:
        known = nodes.FUNCTIONS.get(token.text)
        if known is None:
            raise self.fault(token, f'unknown function with name "{token.text}"')
        _, takes, optional = known
        places, found = [self.now], []
        self.expect("(", "call")
        while not self.takes(")"):
            places.append(self.now)
            found.append(self.expression(0))
            if not self.takes(",") and self.now.text != ")":
                raise self.unexpected(self.now, f"call of \"{token.text}\", expected ',' or ')'")
        if not len(takes) - optional <= len(found) <= len(takes):
            least = "at least " if optional else ""
            raise self.fault(
                token,
                f"expected {least}{len(takes) - optional} argument(s) in call to "
                f'"{token.text}", got {len(found)}',
            )
        for place, argument, wanted in zip(places[1:], found, takes, strict=False):
            self.typed(place, argument, wanted, f'call to function "{token.text}"')
        return nodes.Call(token.text, tuple(found))

    def typed(self, place: Token, node: Node, wanted: str, context: str) -> None:
        if nodes.type_of(node) != wanted:
            raise self.fault(place, f"expected type {wanted} in {context}, got {nodes.type_of(node)}")

    def aggregate(self, token: Token) -> Node:
        operator = token.text.lower()
        grouping = self.grouping()
        self.expect("(", "aggregation")
        place = self.now
        found = [self.expression(0)]
        while self.takes(","):
            place = self.now
            found.append(self.expression(0))
        self.expect(")", "aggregation")
        wanted = 2 if operator in PARAMETERS else 1
        if len(found) != wanted:
            raise self.fault(
                token,
                f"wrong number of arguments for aggregate expression provided, expected {wanted}, "
                f"got {len(found)}",
            )
        self.typed(place, found[-1], nodes.VECTOR, "aggregation expression")
        if wanted == 2:
            self.typed(place, found[0], nodes.SCALAR, "aggregation parameter")
        without, labels = grouping or self.grouping() or (False, ())
        return nodes.Aggregate(operator, found[-1], found[0] if wanted == 2 else None, labels, without)

    def grouping(self) -> tuple[bool, tuple[str, ...]] | None:
        word = self.takes("by", "without")
        return (word.text.lower() == "without", self.labels()) if word else None

    def labels(self) -> tuple[str, ...]:
        self.expect("(", "grouping opts")
        found = []
        while not self.takes(")"):
            if self.now.kind != "name":
                raise self.unexpected(self.now, "grouping opts, expected label")
            found.append(self.take().text)
            if not self.takes(",") and self.now.text != ")":
                raise self.unexpected(self.now, "grouping opts, expected ',' or ')'")
        return tuple(found)

    def binary(self, left: Node, sign: Token, binds: int) -> Node:
        operator = sign.text.lower()
        as_bool = self.takes("bool")
        if as_bool and operator not in COMPARISONS:
            raise self.fault(as_bool, "bool modifier can only be used on comparison operators")
        matching = self.matching()
        right = self.expression(binds - 1 if operator == "^" else binds)
        types = {nodes.type_of(left), nodes.type_of(right)}
        if not types <= {nodes.SCALAR, nodes.VECTOR}:
            raise self.fault(sign, "binary expression must contain only scalar and instant vector types")
        if operator in SETS and nodes.SCALAR in types:
            raise self.fault(sign, f'set operator "{operator}" not allowed in binary scalar expression')
        if operator in COMPARISONS and types == {nodes.SCALAR} and not as_bool:
            raise self.fault(sign, "comparisons between scalars must use BOOL modifier")
        return nodes.Binary(operator, left, right, as_bool is not None, matching)

    def matching(self) -> nodes.Matching:
        word = self.takes("on", "ignoring")
        if word is None:
            return nodes.Matching()
        labels = self.labels()
        side = self.takes("group_left", "group_right")
        include = self.labels() if side and self.now.kind == "sign" and self.now.text == "(" else ()
        many = {"group_left": "left", "group_right": "right"}.get(side.text.lower() if side else "", "")
        return nodes.Matching(word.text.lower() == "on", labels, many, include)


def _number(text: str) -> float:
    return float(int(text, 16)) if text[:2].lower() == "0x" else float(text)

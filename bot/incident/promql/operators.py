"""Operators and aggregations by name, and how strongly the operators bind."""

from __future__ import annotations

BINDS = {
    "or": 1, "and": 2, "unless": 2,
    "==": 3, "!=": 3, "<=": 3, "<": 3, ">=": 3, ">": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "^": 7,
}  # fmt: skip
UNARY = 6  # between * and ^, so that -2^2 is -4
COMPARISONS = frozenset({"==", "!=", "<=", "<", ">=", ">"})
SETS = frozenset({"and", "or", "unless"})
AGGREGATES = frozenset(
    {"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile"}
)
PARAMETERS = frozenset({"topk", "bottomk", "quantile"})

"""A condition: a value is among those of a query that yields few of them.

For Postgres it is written as an array, which is made once and then looked up. `IN (SELECT …)` is a join to
its planner, and before a table was analysed it takes one that asks the query anew for each row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import Boolean


class among(FunctionElement[bool]):  # reads like the operator that it is
    """Whether a column's value is among those of a query of one column."""

    type: Boolean = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], query: Select[Any] | CompoundSelect[Any]) -> None:
        super().__init__(column, query.scalar_subquery())

    def self_group(self, against: OperatorType | None = None) -> among:
        """As it is: compared with 1, as any other function, SQLite would look it up in no index."""
        return self


@compiles(among)
def _in(element: among, compiler: SQLCompiler, **given: Any) -> str:
    column, query = (compiler.process(clause, **given) for clause in element.clauses)
    return f"{column} IN {query}"


@compiles(among, "postgresql")
def _any(element: among, compiler: SQLCompiler, **given: Any) -> str:
    column, query = (compiler.process(clause, **given) for clause in element.clauses)
    return f"{column} = ANY (ARRAY{query})"

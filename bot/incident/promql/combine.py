"""Many series made one, and two sides made one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bot.incident.columns import Labels
from bot.incident.noise import Floats
from bot.incident.promql.errors import PromqlError
from bot.incident.promql.functions import quantile
from bot.incident.promql.nodes import Aggregate, Binary, Matching
from bot.incident.promql.operators import COMPARISONS
from bot.incident.promql.values import Row, Truths, Vector, distinct, dropped, only, shown, without_name

_ARITHMETIC: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod, "^": np.power,
}  # fmt: skip
_COMPARE: Mapping[str, Callable[[Floats, Floats], Truths]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip


# many to few


def aggregate(node: Aggregate, rows: Vector, parameter: Floats | None) -> Vector:
    """One row for each group, except that topk and bottomk keep the rows themselves."""
    groups: dict[Labels, Vector] = {}
    for row in rows:
        key = dropped(row.labels, node.labels) if node.without else only(row.labels, node.labels)
        groups.setdefault(key, []).append(row)
    made: Vector = []
    for labels, members in groups.items():
        values = np.array([each.values for each in members])
        there = np.array([each.there for each in members])
        if node.operator in ("topk", "bottomk"):
            made += _highest(members, values, there, parameter, lowest=node.operator == "bottomk")
        else:
            anywhere: Truths = np.any(there, axis=0).reshape(-1)
            made.append(Row(labels, _reduced(node.operator, values, there, parameter), anywhere))
    return made


def _reduced(operator: str, values: Floats, there: Truths, parameter: Floats | None) -> Floats:
    number = np.maximum(there.sum(axis=0), 1)
    present: Floats = np.where(there, values, 0.0)
    holes: Floats = np.where(there, values, np.nan)
    result: Floats
    match operator:
        case "sum":
            result = present.sum(axis=0)
        case "avg":
            result = present.sum(axis=0) / number
        case "min":
            result = np.fmin.reduce(holes, axis=0)
        case "max":
            result = np.fmax.reduce(holes, axis=0)
        case "count":
            result = there.sum(axis=0).astype(np.float64)
        case "group":
            result = np.ones(values.shape[1])
        case "quantile":
            share = parameter if parameter is not None else np.zeros(values.shape[1])
            result = quantile(values.T, there.T, share)
        case _:
            mean = present.sum(axis=0) / number
            result = np.where(there, (values - mean) ** 2, 0.0).sum(axis=0) / number
            result = np.sqrt(result) if operator == "stddev" else result
    return result


def _highest(
    members: Vector, values: Floats, there: Truths, parameter: Floats | None, *, lowest: bool
) -> Vector:
    wanted = np.nan_to_num(parameter if parameter is not None else np.zeros(values.shape[1])).astype(np.int64)
    worth = np.where(np.isnan(values), -np.inf, -values if lowest else values)
    order = np.argsort(np.where(there, -worth, np.inf), axis=0, kind="stable")
    place = np.argsort(order, axis=0, kind="stable")
    kept = there & (place < wanted[None, :])
    chosen = [Row(row.labels, row.values, kept[number]) for number, row in enumerate(members)]
    height = np.where(kept, worth, -np.inf).max(axis=1)
    return [chosen[number] for number in np.argsort(-height, kind="stable") if bool(kept[number].any())]


# two sides


def binary(node: Binary, left: Floats | Vector, right: Floats | Vector) -> Floats | Vector:
    """Whatever stands between two sides."""
    with np.errstate(all="ignore"):
        if not isinstance(left, list) and not isinstance(right, list):
            return _numbers(node.operator, left, right)
        if not isinstance(right, list):
            return [_with_number(node, row, row.values, right) for row in _many(left)]
        if not isinstance(left, list):
            return [_with_number(node, row, left, row.values) for row in right]
        if node.operator in ("and", "or", "unless"):
            return _sets(node, left, right)
        return _joined(node, left, right)


def _many(value: Floats | Vector) -> Vector:
    return value if isinstance(value, list) else []


def _numbers(operator: str, left: Floats, right: Floats) -> Floats:
    if operator in COMPARISONS:
        return _COMPARE[operator](left, right).astype(np.float64)
    return _ARITHMETIC[operator](left, right)


def _with_number(node: Binary, row: Row, left: Floats, right: Floats) -> Row:
    if node.operator in COMPARISONS and not node.as_bool:
        return Row(row.labels, row.values, row.there & _COMPARE[node.operator](left, right))
    return Row(without_name(row.labels), _numbers(node.operator, left, right), row.there)


def _key(labels: Labels, matching: Matching) -> Labels:
    return only(labels, matching.labels) if matching.on else dropped(labels, matching.labels)


def _sets(node: Binary, left: Vector, right: Vector) -> Vector:
    here, other = (right, left) if node.operator == "or" else (left, right)
    present: dict[Labels, Truths] = {}
    for row in other:
        key = _key(row.labels, node.matching)
        present[key] = present[key] | row.there if key in present else row.there
    made: Vector = list(left) if node.operator == "or" else []
    for row in here:
        found = present.get(_key(row.labels, node.matching), np.zeros_like(row.there))
        made.append(Row(row.labels, row.values, row.there & (found if node.operator == "and" else ~found)))
    return distinct(made)


def _joined(node: Binary, left: Vector, right: Vector) -> Vector:
    matching = node.matching
    flipped = matching.many == "right"
    many, one = (right, left) if flipped else (left, right)
    singles = _unique(one, matching, "left" if flipped else "right")
    made: Vector = []
    used: dict[Labels, Truths] = {}
    for row in many:
        key = _key(row.labels, matching)
        for single in singles.get(key, ()):
            there = row.there & single.there
            if not bool(there.any()):
                continue
            if not matching.many:
                if key in used and bool((used[key] & there).any()):
                    raise PromqlError(
                        "multiple matches for labels: many-to-one matching must be explicit "
                        "(group_left/group_right)"
                    )
                used[key] = used[key] | there if key in used else there
            values = (single.values, row.values) if flipped else (row.values, single.values)
            made.append(_pair(node, row, single, values, there))
    return distinct(made)


def _unique(rows: Vector, matching: Matching, side: str) -> dict[Labels, Vector]:
    """The side of which each group may have only one."""
    found: dict[Labels, Vector] = {}
    for row in rows:
        group = found.setdefault(_key(row.labels, matching), [])
        for other in group:
            if bool((other.there & row.there).any()):
                raise PromqlError(
                    f"found duplicate series for the match group {shown(_key(row.labels, matching))} "
                    f"on the {side} hand-side of the operation: [{shown(row.labels)}, {shown(other.labels)}];"
                    "many-to-many matching not allowed: matching labels must be unique on one side"
                )
        group.append(row)
    return found


def _pair(node: Binary, row: Row, single: Row, values: tuple[Floats, Floats], there: Truths) -> Row:
    matching, compares = node.matching, node.operator in COMPARISONS
    filters = compares and not node.as_bool
    labels = row.labels if filters else without_name(row.labels)
    if matching.many:
        extra = dict(only(single.labels, matching.include))
        kept = {key: value for key, value in labels if key not in matching.include}
        labels = tuple(sorted({**kept, **extra}.items()))
    elif matching.on:
        labels = only(labels, matching.labels)
    else:
        labels = tuple(pair for pair in labels if pair[0] not in matching.labels)
    if filters:
        return Row(labels, values[0], there & _COMPARE[node.operator](*values))
    return Row(labels, _numbers(node.operator, *values), there)

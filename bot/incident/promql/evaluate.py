"""A query's tree becomes numbers, for all steps of the query at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bot.incident.noise import Floats
from bot.incident.promql import functions, nodes
from bot.incident.promql.combine import aggregate, binary
from bot.incident.promql.errors import PromqlError
from bot.incident.promql.nodes import Node
from bot.incident.promql.values import Row, Text, Value, Vector, Window, distinct, without_name
from bot.incident.samples import Series

LOOKBACK_S = 300.0
DEFAULT_STEP_S = 60.0  # of a subquery that names none: Prometheus' evaluation interval
MOST_SAMPLES = 50_000_000
TOO_MANY = "query processing would load too many samples into memory in query execution"


@dataclass(frozen=True)
class Evaluator:
    """The series there are, and the moments that are asked for."""

    series: Sequence[Series]
    steps: Floats
    start: float
    end: float
    _places: dict[tuple[int, float, float], tuple[Floats, NDArray[np.int64]]] = field(default_factory=dict)

    @classmethod
    def between(cls, series: Sequence[Series], start: float, end: float, step: float) -> Evaluator:
        """For a range query; an instant query has start equal to end."""
        count = int(np.floor((end - start) / step + 1e-9)) + 1
        return cls(series, start + step * np.arange(count, dtype=np.float64), start, end)

    def value(self, node: Node) -> Value:
        """Of any expression that is no range."""
        with np.errstate(all="ignore"):
            match node:
                case nodes.Number(value=value):
                    return np.full(len(self.steps), value)
                case nodes.String(value=text):
                    return Text(text)
                case nodes.Negated(inner=inner):
                    return self._negated(self.value(inner))
                case nodes.Selector():
                    return self._instant(node)
                case nodes.Aggregate(inner=inner, parameter=parameter):
                    asked = None if parameter is None else self._scalar(parameter)
                    return aggregate(node, self._vector(inner), asked)
                case nodes.Binary(left=left, right=right):
                    return binary(node, self._side(left), self._side(right))
                case nodes.Call(name=name, arguments=arguments):
                    return self._call(name, arguments)
                case nodes.Subquery():
                    raise PromqlError("a range cannot be shown here; wrap it in a function")

    def raw(self, node: nodes.Selector | nodes.Subquery) -> list[Window]:
        """The scrapes that each step looks at."""
        moments = self._moments(node.when)
        starts = moments - (node.range_s or 0.0)
        windows = []
        total = 0
        for labels, times, values in self._scrapes(node, moments):
            first = self._place(times, starts)
            last = self._place(times, moments) - 1
            total += int(np.maximum(last - first + 1, 0).sum())
            if total > MOST_SAMPLES:
                raise PromqlError(
                    "query processing would load too many samples into memory in query execution"
                )
            if bool((last >= first).any()):
                windows.append(Window(labels, times, values, first, last, starts, moments))
        return windows

    # where numbers come from

    def _moments(self, when: nodes.When) -> Floats:
        if when.at is None:
            return self.steps - when.offset
        fixed = {"start": self.start, "end": self.end}.get(str(when.at))
        return np.full(len(self.steps), float(when.at) if fixed is None else fixed) - when.offset

    def _chosen(self, selector: nodes.Selector) -> list[Series]:
        tests = [(each.label, each.test) for each in selector.matchers]
        found = []
        for series in self.series:
            labels = dict(series.labels)
            if all(test(labels.get(label, "")) for label, test in tests):
                found.append(series)
        return found

    def _place(self, times: Floats, moments: Floats) -> NDArray[np.int64]:
        """How many scrapes are not after each moment; the same for all series that were scraped together."""
        key = (id(times), float(moments[0]), float(moments[-1]))
        if key not in self._places:  # with the times themselves, so that their id stays theirs
            self._places[key] = (times, np.searchsorted(times, moments, side="right"))
        return self._places[key][1]

    def _instant(self, selector: nodes.Selector) -> Vector:
        moments = self._moments(selector.when)
        rows = []
        for series in self._chosen(selector):
            last = np.searchsorted(series.times, moments, side="right") - 1
            at = np.maximum(last, 0)
            there = (last >= 0) & (moments - series.times[at] < LOOKBACK_S) & (moments < series.ended)
            if bool(there.any()):
                rows.append(Row(series.labels, series.values[at], there))
        return rows

    def _scrapes(
        self, node: nodes.Selector | nodes.Subquery, moments: Floats
    ) -> list[tuple[tuple[tuple[str, str], ...], Floats, Floats]]:
        if isinstance(node, nodes.Selector):
            return [(each.labels, each.times, each.values) for each in self._chosen(node)]
        step = node.step_s or DEFAULT_STEP_S
        first = np.floor((float(moments.min()) - node.range_s) / step) * step + step
        count = int(np.floor((float(moments.max()) - first) / step)) + 1
        if count > 100_000:
            raise PromqlError(TOO_MANY)
        if count < 1:  # the range lies between two steps
            return []
        inner = Evaluator(self.series, first + step * np.arange(count), self.start, self.end)
        found = inner.value(node.inner)
        rows = found if isinstance(found, list) else [_everywhere(found)]
        return [(row.labels, inner.steps[row.there], row.values[row.there]) for row in rows]

    # what is made of them

    def _vector(self, node: Node) -> Vector:
        value = self.value(node)
        return value if isinstance(value, list) else []

    def _scalar(self, node: Node) -> Floats:
        value = self.value(node)
        return value if isinstance(value, np.ndarray) else np.full(len(self.steps), np.nan)

    def _side(self, node: Node) -> Floats | Vector:
        value = self.value(node)
        return np.full(len(self.steps), np.nan) if isinstance(value, Text) else value

    def _negated(self, value: Value) -> Value:
        if isinstance(value, list):
            return distinct([Row(without_name(row.labels), -row.values, row.there) for row in value])
        return value if isinstance(value, Text) else -value

    def _call(self, name: str, arguments: tuple[Node, ...]) -> Value:
        match name:
            case "time":
                return self.steps
            case "pi":
                return np.full(len(self.steps), np.pi)
            case "scalar":
                return self._single(self._vector(arguments[0]))
            case "vector":
                return [_everywhere(self._scalar(arguments[0]))]
            case "histogram_quantile":
                return functions.histogram_quantile(self._scalar(arguments[0]), self._vector(arguments[1]))
            case "label_replace":
                texts = [each.value for each in arguments[1:] if isinstance(each, nodes.String)]
                target, template, source, pattern = texts
                return functions.label_replace(self._vector(arguments[0]), target, template, source, pattern)
            case "sort" | "sort_desc":
                return _sorted(self._vector(arguments[0]), falling=name == "sort_desc")
            case "absent" | "absent_over_time":
                return self._absent(arguments[0])
            case "timestamp":
                return self._timestamps(arguments[0])
        ranges = [each for each in arguments if nodes.type_of(each) == nodes.RANGE]
        return self._over_range(name, arguments) if ranges else self._over_vector(name, arguments)

    def _over_range(self, name: str, arguments: tuple[Node, ...]) -> Vector:
        rows = []
        ranged = next(each for each in arguments if isinstance(each, nodes.Selector | nodes.Subquery))
        for window in self.raw(ranged):
            if name == "quantile_over_time":
                values, there = functions.quantile_over_time(window, self._scalar(arguments[0]))
            elif name == "predict_linear":
                values, there = functions.line(window, self._scalar(arguments[1]), self.steps)
            else:
                values, there = functions.OVER_RANGES[name](window)
            if bool(there.any()):
                labels = window.labels if name in functions.KEEP_NAME else without_name(window.labels)
                rows.append(Row(labels, values, there))
        return distinct(rows)

    def _over_vector(self, name: str, arguments: tuple[Node, ...]) -> Vector:
        rows = self._vector(arguments[0]) if arguments else [_everywhere(self.steps)]
        numbers = [self._scalar(each) for each in arguments[1:]]
        made = []
        for row in rows:
            if name in functions.CALENDAR:
                values = functions.calendar(name, row.values)
            elif name == "round":
                values = functions.rounded(row.values, numbers[0] if numbers else np.ones(len(self.steps)))
            elif name == "clamp_min":
                values = np.maximum(row.values, numbers[0])
            elif name == "clamp_max":
                values = np.minimum(row.values, numbers[0])
            elif name == "clamp":
                values = np.maximum(np.minimum(row.values, numbers[1]), numbers[0])
            else:
                values = functions.OVER_VALUES[name](row.values)
            made.append(Row(without_name(row.labels), values, row.there))
        return distinct(made)

    def _single(self, rows: Vector) -> Floats:
        """The value of the only series of a step; NaN when there is none or more than one."""
        if not rows:
            return np.full(len(self.steps), np.nan)
        there = np.array([row.there for row in rows])
        values = np.where(there, np.array([row.values for row in rows]), 0.0).sum(axis=0)
        return np.where(there.sum(axis=0) == 1, values, np.nan)

    def _absent(self, node: Node) -> Vector:
        present = np.zeros(len(self.steps), dtype=np.bool_)
        if isinstance(node, nodes.Selector | nodes.Subquery) and node.range_s is not None:
            for window in self.raw(node):
                present |= window.counts >= 1
        else:
            for row in self._vector(node):
                present |= row.there
        matchers = node.matchers if isinstance(node, nodes.Selector) else ()
        known = {each.label: each.value for each in matchers if each.how == "=" and each.label != "__name__"}
        return (
            []
            if bool(present.all())
            else [Row(tuple(sorted(known.items())), np.ones(len(self.steps)), ~present)]
        )

    def _timestamps(self, node: Node) -> Vector:
        if not isinstance(node, nodes.Selector):
            return [Row(without_name(row.labels), self.steps, row.there) for row in self._vector(node)]
        moments, rows = self._moments(node.when), []
        for series, row in zip(self._chosen(node), self._instant(node), strict=False):
            last = np.maximum(np.searchsorted(series.times, moments, side="right") - 1, 0)
            rows.append(Row(without_name(row.labels), series.times[last], row.there))
        return distinct(rows)


def _everywhere(values: Floats | Text) -> Row:
    numbers = values if isinstance(values, np.ndarray) else np.zeros(0)
    return Row((), numbers, np.ones(len(numbers), dtype=np.bool_))


def _sorted(rows: Vector, *, falling: bool) -> Vector:
    """By the value of the last step: only instant queries show an order."""
    return sorted(rows, key=lambda row: float(row.values[-1]), reverse=falling)

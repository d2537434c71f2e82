"""What expressions evaluate to: at every step of a query at once, one row of numbers for each series.

`there` says at which steps a series exists; NaN is a number like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bot.incident.columns import Labels
from bot.incident.noise import Floats
from bot.incident.promql.errors import PromqlError

Truths = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Row:
    """One series at every step."""

    labels: Labels
    values: Floats
    there: Truths


@dataclass(frozen=True, eq=False)
class Window:
    """One series with its scrapes, and which of them (`first` to `last`) each step looks at."""

    labels: Labels
    times: Floats
    values: Floats
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    starts: Floats
    ends: Floats

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many scrapes each step has."""
        counts: NDArray[np.int64] = np.maximum(self.last - self.first + 1, 0)
        return counts


@dataclass(frozen=True)
class Text:
    """A string."""

    value: str


Vector = list[Row]
Value = Floats | Vector | Text


def without_name(labels: Labels) -> Labels:
    """What remains when a number no longer is the metric itself."""
    return tuple(pair for pair in labels if pair[0] != "__name__")


def only(labels: Labels, names: Iterable[str]) -> Labels:
    """Some of the labels."""
    wanted = frozenset(names)
    return tuple(pair for pair in labels if pair[0] in wanted)


def dropped(labels: Labels, names: Iterable[str]) -> Labels:
    """All but some of the labels, and never the name."""
    unwanted = frozenset((*names, "__name__"))
    return tuple(pair for pair in labels if pair[0] not in unwanted)


def shown(labels: Labels) -> str:
    """As Prometheus writes it."""
    name = dict(labels).get("__name__", "")
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels if key != "__name__") + "}"


def distinct(rows: Sequence[Row]) -> Vector:
    """Rows of the same labels made one; two of them at one step are a fault."""
    kept: dict[Labels, Row] = {}
    for row in rows:
        if (other := kept.get(row.labels)) is None:
            kept[row.labels] = row
            continue
        if bool((row.there & other.there).any()):
            raise PromqlError("vector cannot contain metrics with the same labelset")
        values = np.where(row.there, row.values, other.values)
        kept[row.labels] = Row(row.labels, values, row.there | other.there)
    return list(kept.values())

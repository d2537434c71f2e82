"""What a query says, as a tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.incident.patterns import Matcher

SCALAR, VECTOR, RANGE, STRING = "scalar", "instant vector", "range vector", "string"


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True)
class String:
    """A text, as some functions take it."""

    value: str


@dataclass(frozen=True)
class When:
    """`offset` and `@`: which moment is meant instead of that of the step."""

    offset: float = 0.0
    at: float | str | None = None


@dataclass(frozen=True)
class Selector:
    """Series by their labels; with a range all scrapes in it."""

    matchers: tuple[Matcher, ...]
    range_s: float | None = None
    when: When = When()


@dataclass(frozen=True)
class Subquery:
    """An expression evaluated again and again over a range."""

    inner: Node
    range_s: float
    step_s: float | None
    when: When = When()


@dataclass(frozen=True)
class Call:
    """A function."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Aggregate:
    """Many series made into few."""

    operator: str
    inner: Node
    parameter: Node | None = None
    labels: tuple[str, ...] = ()
    without: bool = False


@dataclass(frozen=True)
class Matching:
    """Which series of two sides belong together."""

    on: bool = False
    labels: tuple[str, ...] = ()
    many: str = ""  # "left" or "right": that side may have several for one of the other
    include: tuple[str, ...] = ()


@dataclass(frozen=True)
class Binary:
    """Two sides and what stands between them."""

    operator: str
    left: Node
    right: Node
    as_bool: bool = False
    matching: Matching = Matching()


@dataclass(frozen=True)
class Negated:
    """A minus in front."""

    inner: Node


Node = Number | String | Selector | Subquery | Call | Aggregate | Binary | Negated

_OF_RANGES = """rate irate increase delta idelta deriv changes resets avg_over_time sum_over_time
min_over_time max_over_time count_over_time last_over_time stddev_over_time stdvar_over_time present_over_time
absent_over_time"""
_OF_VECTORS = "abs ceil floor exp ln log2 log10 sqrt sgn sort sort_desc absent timestamp"
_OF_TIMES = "hour minute day_of_week day_of_month month"

# Name: what it gives, what it takes, how many of these may be left out.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...], int]] = {
    **dict.fromkeys(_OF_RANGES.split(), (VECTOR, (RANGE,), 0)),
    **dict.fromkeys(_OF_VECTORS.split(), (VECTOR, (VECTOR,), 0)),
    **dict.fromkeys(_OF_TIMES.split(), (VECTOR, (VECTOR,), 1)),
    "quantile_over_time": (VECTOR, (SCALAR, RANGE), 0),
    "predict_linear": (VECTOR, (RANGE, SCALAR), 0),
    "histogram_quantile": (VECTOR, (SCALAR, VECTOR), 0),
    "round": (VECTOR, (VECTOR, SCALAR), 1),
    "clamp": (VECTOR, (VECTOR, SCALAR, SCALAR), 0),
    "clamp_min": (VECTOR, (VECTOR, SCALAR), 0),
    "clamp_max": (VECTOR, (VECTOR, SCALAR), 0),
    "label_replace": (VECTOR, (VECTOR, STRING, STRING, STRING, STRING), 0),
    "scalar": (SCALAR, (VECTOR,), 0),
    "vector": (VECTOR, (SCALAR,), 0),
    "time": (SCALAR, (), 0),
    "pi": (SCALAR, (), 0),
}


def type_of(node: Node) -> str:
    """Which of the four types an expression has."""
    match node:
        case Number():
            return SCALAR
        case String():
            return STRING
        case Selector(range_s=None):
            return VECTOR
        case Selector() | Subquery():
            return RANGE
        case Call(name=name):
            return FUNCTIONS[name][0]
        case Aggregate():
            return VECTOR
        case Negated(inner=inner):
            return type_of(inner)
        case Binary(left=left, right=right):
            return SCALAR if type_of(left) == type_of(right) == SCALAR else VECTOR


def moved(node: Selector | Subquery, when: When) -> Selector | Subquery:
    """The same at another moment."""
    return replace(node, when=when)

"""Stories for these tests: always the same seed and the same evening."""

from functools import cache

from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.parser import parse
from bot.incident.promql.values import Row
from bot.incident.samples import Samples
from bot.incident.scenarios import SCENARIOS
from bot.incident.story import Story

EVENING = 1_790_000_000.0


def story(name: str = "nothing_wrong", seed: int = 7, speed: float = 1.0, at: float = EVENING) -> Story:
    """One telling of a scenario."""
    return Story(SCENARIOS[name], seed, at, speed)


@cache
def samples(told: Story) -> Samples:
    """Computed once for all tests."""
    return Samples(told)


def rows(told: Story, query: str, minute: float = 0.0) -> list[Row]:
    """A query at one minute of the story."""
    at = told.moment(minute)
    found = Evaluator.between(samples(told).upto(at), at, at, 15.0).value(parse(query))
    assert isinstance(found, list), f"{query} is no vector"
    return [row for row in found if row.there[-1]]


def value(told: Story, query: str, minute: float = 0.0) -> float:
    """The only number of a query at one minute of the story."""
    (row,) = rows(told, query, minute)
    return float(row.values[-1])

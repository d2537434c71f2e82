"""Whatever is asked, an answer or a refusal comes back: never a fault of ours."""

import random
from contextlib import suppress

from bot.incident.logql import LogqlError
from bot.incident.logql import parse as parse_logql
from bot.incident.promql import nodes
from bot.incident.promql.errors import PromqlError
from bot.incident.promql.evaluate import Evaluator
from bot.incident.promql.parser import parse
from tests.bot.incident.stories import EVENING, samples, story

LEAVES = (
    *["up", "db_sessions", "deploy_info", "nothing", "time()", "3", "-1", "1e300", "NaN", "Inf"],
    *('http_requests_total{service="stock"}', 'up{job=~"s.*"}', '"text"'),
    *("db_sessions @ 5", "db_sessions offset 3h"),
)
WORDS = (
    *[
        "sum",
        "by",
        "rate",
        "topk",
        "up",
        "and",
        "on",
        "offset",
        "bool",
        "json",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "=~",
        "==",
        "-",
        "*",
        "^",
        "@",
        "|=",
        "|",
        "7",
        "5m",
        "1h:1m",
    ],
    *('"x"', '"\\8"', "`", "'", "$", "\n", "é"),
)


def expression(rng: random.Random, depth: int) -> str:
    """A query that mostly has the right types."""
    if depth == 0:
        return rng.choice(LEAVES)
    inner, other = (expression(rng, depth - 1) for _ in range(2))
    number, window = (
        rng.choice(("0.5", "2", "-1", "NaN", "1e300")),
        rng.choice(("5m", "1m:7s", "1m:1h", "1s")),
    )
    function = rng.choice(sorted(nodes.FUNCTIONS))
    return rng.choice(
        (
            f"({inner}) {rng.choice(('+', '/', '%', '^', '==', '> bool', 'and', 'or', 'unless'))} ({other})",
            f"({inner}) * on(service) group_left(version) ({other})",
            f"{rng.choice(('sum', 'max', 'count', 'stddev'))} by (service) ({inner})",
            f"{rng.choice(('topk', 'bottomk', 'quantile'))}({number}, {inner})",
            f"{function}({inner})",
            f"{function}(({inner})[{window}])" if ":" in window else f"{function}(db_sessions[{window}])",
            f"histogram_quantile({number}, {inner})",
            f"quantile_over_time({number}, ({inner})[10m:1m])",
            f"clamp({inner}, {number}, 3)",
            f'label_replace({inner}, "a", "$1$9", "job", "(.*)")',
        )
    )


def test_a_query_of_any_shape_is_answered_or_refused() -> None:
    rng, known, answered = random.Random(5), samples(story()).upto(EVENING), 0
    for _ in range(1_500):
        query = expression(rng, rng.randrange(4))
        with suppress(PromqlError):
            node = parse(query)
            if nodes.type_of(node) != nodes.RANGE:
                Evaluator.between(known, EVENING - 600, EVENING, 120).value(node)
                answered += 1
    assert answered > 300


def test_words_in_any_order_are_answered_or_refused() -> None:
    rng = random.Random(6)
    for _ in range(5_000):
        query = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(9)))
        with suppress(PromqlError):
            parse(query)
        with suppress(LogqlError):
            parse_logql('{service="x"} ' + query)

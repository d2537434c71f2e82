"""A broken rule is a bug of ours, and not to be taken for a user's mistake or a failure of the world."""

from core.errors import RuleBroken


def test_a_broken_rule_is_no_error_that_callers_catch_for_other_reasons() -> None:
    assert RuleBroken.__mro__[1] is Exception

"""Errors of the rules themselves: a caller broke the contract of `core`, a bug and never a user's mistake."""


class RuleBroken(Exception):
    """A rule of the core was broken by the code that drives it."""
